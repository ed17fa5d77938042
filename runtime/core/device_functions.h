// What a library with the C ABI needs of a device other than the CPU: memory for tensors, and
// copies. A program for CUDA hands the table to its library before its first tensor is made.

#ifndef AOTI_RUNTIME_CORE_DEVICE_FUNCTIONS_H_
#define AOTI_RUNTIME_CORE_DEVICE_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/core/device.h"

namespace aoti::internal {

// All functions but `release` may throw std::exception. They work on the queue that this thread is
// in (DeviceQueue::Begin), and need one unless they say so.
struct DeviceFunctions {
  // Uninitialised memory; `owner` is what `release` takes. `index`: of the device; -1: the current
  // one.
  void* (*allocate)(std::size_t bytes, std::int32_t index, void** owner);
  // The memory may be given to work that is asked for later on the same queue. Needs no queue.
  void (*release)(void* owner) noexcept;
  // An upload or download is done when it returns.
  void (*copy)(void* to, const void* from, std::size_t bytes, CopyKind kind);
  void (*zero)(void* memory, std::size_t bytes);
  std::int32_t (*current_device)();
  void* (*current_stream)();
  // Whether the thread's queue records its work for a graph. False without a queue.
  bool (*is_recording)();
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_DEVICE_FUNCTIONS_H_
