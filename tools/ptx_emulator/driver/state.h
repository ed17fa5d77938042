// All that the driver knows: devices, contexts, and every live object.

#ifndef PTX_EMULATOR_DRIVER_STATE_H_
#define PTX_EMULATOR_DRIVER_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/ptx_emulator/driver/api.h"
#include "tools/ptx_emulator/exec/launch.h"
#include "tools/ptx_emulator/exec/memory_map.h"
#include "tools/ptx_emulator/ptx/program.h"

namespace ptx_emulator {

// Work of a stream; returns a CUresult.
using Operation = std::function<int()>;

// A handle that the program holds. Handles are looked up, so one that is destroyed is refused.
struct Object {
  virtual ~Object() = default;
  int device = 0;
};

struct Context : Object {
  int retained = 0;
};
struct Graph : Object {
  std::vector<Operation> operations;
  int mode = 0;  // 0: global, 1: of the thread, 2: relaxed
};
struct GraphExec : Object {
  std::vector<Operation> operations;
};
struct Stream : Object {
  std::shared_ptr<Graph> capture;
  bool origin = false;  // The stream that the capture began with.
};
struct Event : Object {
  bool recorded = false;
  std::shared_ptr<Graph> capture;
  double milliseconds = 0;
};
struct Pool : Object {
  std::map<int, uint64_t> attributes;
};
struct LoadedModule : Object {
  Module module;
  std::map<std::string, uint64_t> addresses;  // Of the .global variables.
};
struct Function : Object {
  std::shared_ptr<LoadedModule> module;
  const Kernel* kernel = nullptr;
  int64_t most_dynamic_shared = 0;
};

struct Statistics {
  uint64_t instructions = 0;
  uint64_t launches = 0;
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t live_modules = 0;
  uint64_t live_streams = 0;
  uint64_t failures = 0;
  uint64_t captures = 0;
  uint64_t graph_launches = 0;
  uint64_t live_graphs = 0;
};

class State {
 public:
  static State& Get();

  // The object, or null with `error` set to say so.
  template <typename T>
  std::shared_ptr<T> Find(void* handle) {
    auto found = objects.find(handle);
    return found == objects.end() ? nullptr : std::dynamic_pointer_cast<T>(found->second);
  }
  template <typename T>
  T* Add(std::shared_ptr<T> object) {
    objects[object.get()] = object;
    return object.get();
  }
  template <typename T>
  uint64_t Count() const {
    uint64_t count = 0;
    for (const auto& [handle, object] : objects) count += dynamic_cast<T*>(object.get()) != nullptr;
    return count;
  }

  // The stream of a handle; null, 1 and 2 are the default streams.
  std::shared_ptr<Stream> FindStream(void* handle);
  // Runs the operation, or notes it if the stream is captured.
  int Enqueue(void* stream, Operation operation);
  // Says what is wrong, and lets the process end with an error.
  int Fail(int code, const std::string& what);
  // A failed operation breaks the context, as on a GPU: all that follows returns its code.
  int Break(int code, const std::string& what);
  // Device of the current context; -1 if there is none.
  int CurrentDevice() const;
  Statistics Count();
  bool Capturing() const;
  // "2 modules, 64 bytes of device memory"; empty if nothing is left.
  std::string Leaks();

  std::recursive_mutex mutex;
  bool initialized = false;
  int arch = 80;
  int devices = 1;
  int broken = 0;
  bool check_races = true;
  uint64_t most_instructions = ~0ull;
  uint64_t device_bytes = 16ull << 30;
  uint64_t failures = 0;
  std::string last_failure;
  uint64_t instructions = 0;
  uint64_t launches = 0;
  uint64_t captures = 0;
  uint64_t graph_launches = 0;
  uint64_t peak_bytes = 0;
  MemoryMap memory;
  std::map<void*, std::shared_ptr<Object>> objects;
  std::vector<std::shared_ptr<Context>> primary;
  std::vector<std::shared_ptr<Pool>> pools;
  std::shared_ptr<Stream> default_stream = std::make_shared<Stream>();

 private:
  State();
};

// The stack of contexts of this thread.
std::vector<Context*>& ContextStack();

// Runs the body of a function of the API: one thread at a time, after cuInit, in a context that
// no failure has broken.
template <typename Body>
int Call(Body body) {
  State& state = State::Get();
  std::lock_guard lock(state.mutex);
  if (!state.initialized) return kNotInitialized;
  if (state.broken != 0) return state.broken;
  return body(state);
}

// For what the end of a program calls: works in a broken context too.
template <typename Body>
int CallAlways(Body body) {
  State& state = State::Get();
  std::lock_guard lock(state.mutex);
  return state.initialized ? body(state) : kNotInitialized;
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_DRIVER_STATE_H_
