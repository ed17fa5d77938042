// What the process says at its end, and the functions that only the emulator has.

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "tools/ptx_emulator/driver/environment.h"
#include "tools/ptx_emulator/driver/state.h"

namespace ptx_emulator {
namespace {

constexpr int kExitStatus = 86;

// Runs when the library is unloaded: after the destructors of the program's static objects.
__attribute__((destructor)) void Report() {
  State& state = State::Get();
  bool failed = state.failures > 0;
  std::string leaks = state.Leaks();
  if (!leaks.empty()) {
    std::cerr << "ptx_emulator: left at the end: " << leaks << std::endl;
    failed = failed || NumberFromEnvironment("PTX_EMULATOR_LEAKS", 0) != 0;
  }
  if (NumberFromEnvironment("PTX_EMULATOR_STATISTICS", 0) != 0) {
    Statistics statistics = state.Count();
    std::cerr << "ptx_emulator: " << statistics.launches << " launches, " << statistics.instructions
              << " instructions, " << statistics.peak_bytes << " bytes at most, "
              << statistics.captures << " captures, " << statistics.graph_launches
              << " launches of graphs" << std::endl;
  }
  if (!failed) return;
  std::fflush(nullptr);
  std::_Exit(kExitStatus);
}

}  // namespace
}  // namespace ptx_emulator

// What the emulator has counted since the process began.
PTX_EMULATOR_API void ptx_emulator_statistics(ptx_emulator::Statistics* statistics) {
  auto& state = ptx_emulator::State::Get();
  std::lock_guard lock(state.mutex);
  *statistics = state.Count();
}

// What the last failure said; until the next one.
PTX_EMULATOR_API const char* ptx_emulator_last_failure() {
  auto& state = ptx_emulator::State::Get();
  std::lock_guard lock(state.mutex);
  return state.last_failure.c_str();
}

// Forgets the failures, and mends the context: for tests that expect them. Returns their number.
PTX_EMULATOR_API uint64_t ptx_emulator_take_failures() {
  auto& state = ptx_emulator::State::Get();
  std::lock_guard lock(state.mutex);
  uint64_t failures = state.failures;
  state.failures = 0;
  state.broken = 0;
  return failures;
}
