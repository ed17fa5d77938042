#include "tools/ptx_emulator/driver/state.h"

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "tools/ptx_emulator/driver/environment.h"

namespace ptx_emulator {

State& State::Get() {
  // Never destroyed: programs call the driver from destructors of static objects.
  static State* state = new State;
  return *state;
}

State::State() {
  arch = static_cast<int>(NumberFromEnvironment("PTX_EMULATOR_ARCH", 80));
  devices = static_cast<int>(NumberFromEnvironment("PTX_EMULATOR_DEVICES", 1));
  check_races = NumberFromEnvironment("PTX_EMULATOR_RACES", 1) != 0;
  device_bytes = NumberFromEnvironment("PTX_EMULATOR_MEMORY", device_bytes);
  most_instructions = NumberFromEnvironment("PTX_EMULATOR_MOST_INSTRUCTIONS", 20'000'000'000);
  for (int i = 0; i < devices; ++i) {
    primary.push_back(std::make_shared<Context>());
    primary.back()->device = i;
    pools.push_back(std::make_shared<Pool>());
    pools.back()->device = i;
  }
}

std::vector<Context*>& ContextStack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

int State::CurrentDevice() const {
  return ContextStack().empty() || ContextStack().back() == nullptr ? -1
                                                                    : ContextStack().back()->device;
}

std::shared_ptr<Stream> State::FindStream(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return default_stream;
  return Find<Stream>(handle);
}

int State::Enqueue(void* handle, Operation operation) {
  std::shared_ptr<Stream> stream = FindStream(handle);
  if (stream == nullptr) return Fail(kInvalidHandle, "the stream is unknown or destroyed");
  if (stream->capture != nullptr) {
    stream->capture->operations.push_back(std::move(operation));
    return kSuccess;
  }
  return operation();
}

int State::Fail(int code, const std::string& what) {
  ++failures;
  last_failure = what;
  std::cerr << "ptx_emulator: " << what << std::endl;
  if (NumberFromEnvironment("PTX_EMULATOR_ABORT", 0) != 0) std::abort();
  return code;
}

int State::Break(int code, const std::string& what) {
  broken = code;
  return Fail(code, what);
}

bool State::Capturing() const {
  for (const auto& [handle, object] : objects) {
    auto* stream = dynamic_cast<Stream*>(object.get());
    if (stream != nullptr && stream->capture != nullptr && stream->capture->mode != 2) return true;
  }
  return false;
}

Statistics State::Count() {
  Statistics statistics;
  statistics.instructions = instructions;
  statistics.launches = launches;
  for (const auto& [base, allocation] : memory.allocations()) {
    if (allocation.live && allocation.kind == Allocation::Kind::kDevice) {
      statistics.live_bytes += allocation.bytes;
    }
  }
  statistics.peak_bytes = peak_bytes;
  statistics.live_modules = Count<LoadedModule>();
  statistics.live_streams = Count<Stream>();
  statistics.failures = failures;
  statistics.captures = captures;
  statistics.graph_launches = graph_launches;
  statistics.live_graphs = Count<GraphExec>();
  return statistics;
}

std::string State::Leaks() {
  std::ostringstream text;
  auto add = [&](uint64_t count, const char* what) {
    if (count == 0) return;
    text << (text.str().empty() ? "" : ", ") << count << " " << what;
  };
  uint64_t allocations = 0;
  uint64_t host = 0;
  for (const auto& [base, allocation] : memory.allocations()) {
    if (!allocation.live) continue;
    allocations += allocation.kind == Allocation::Kind::kDevice;
    host += allocation.kind == Allocation::Kind::kHost;
  }
  uint64_t contexts = 0;
  for (const auto& context : primary) contexts += context->retained > 0;
  add(allocations, "allocations of device memory");
  if (allocations > 0) text << " (" << Count().live_bytes << " bytes)";
  add(host, "ranges of pinned host memory");
  add(Count<LoadedModule>(), "modules");
  add(Count<Stream>(), "streams");
  add(Count<Event>(), "events");
  add(Count<Graph>() + Count<GraphExec>(), "graphs");
  add(contexts, "retained primary contexts");
  return text.str();
}

}  // namespace ptx_emulator
