// A device other than the CPU on which programs run, as the core uses it. //runtime/cuda implements
// it; binaries without a CUDA program do not contain that.

#ifndef AOTI_RUNTIME_CORE_DEVICE_H_
#define AOTI_RUNTIME_CORE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "aoti/error.h"

namespace aoti::internal {

// What went wrong on a device, and what was being done. The public API returns it as an Error with
// this code.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Memory of a device, by the address of its first byte.
using DeviceMemory = std::shared_ptr<void>;

enum class CopyKind { kUpload, kDownload, kOnDevice };

// The C ABI's numbers of a device.
struct DeviceNumber {
  std::int32_t type = 0;  // the CPU
  std::int32_t index = 0;
};

// The kernels of a call, recorded to be launched as one, with the memory that they work on. Every
// function but the destructor may throw DeviceError, and is called in the queue's scope.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Memory for an input, whose address stays. Asked for once for each number, before Record().
  virtual void* Input(std::size_t number, std::size_t bytes) = 0;
  // Records what `work` asks of the queue, which is not done. Returns false if `work` did.
  virtual bool Record(const std::function<bool()>& work) = 0;
  // Asks the queue for what was recorded.
  virtual void Replay() = 0;
};

// The work of one runner on a device, in the order in which it is asked for. Every function but the
// destructor and End() may throw DeviceError.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Between these two, this thread's work on the device, also that of generated code, is this
  // queue's. End() waits until the work is done, unless Leave() was called. stream: the caller's,
  // on which the work is; null: the queue's own.
  virtual void Begin(void* stream) = 0;
  virtual void End() noexcept = 0;
  // Lets work go on after End(), or waits for it if something of it must be looked at.
  virtual void Leave() = 0;

  // Waits for all work that was asked of the device.
  virtual void WaitForOthers() = 0;

  // What generated code takes as its stream.
  virtual void* stream() const = 0;

  // Memory with a copy of the host's bytes, which must stay unchanged until Wait(). It is valid
  // until the next call with the same number. Never null.
  virtual void* Upload(std::size_t number, const void* host, std::size_t bytes) = 0;
  // Memory that may be used by later work of the queue after its last reference.
  virtual DeviceMemory Allocate(std::size_t bytes) = 0;
  // Done after Wait(); until then, memory of the host must stay.
  virtual void Copy(void* to, const void* from, std::size_t bytes, CopyKind kind) = 0;
  virtual void Wait() = 0;

  // For work on the stream of this call. The queue must outlive it.
  virtual std::unique_ptr<DeviceGraph> NewGraph() = 0;
};

// Thread safe. Every function but the destructor may throw DeviceError.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceNumber number() const = 0;

  // Uninitialised memory, which goes back to the device with its last reference. Never null.
  virtual DeviceMemory Allocate(std::size_t bytes) = 0;

  // A copy of host memory that stays unchanged as long as the copy exists. All who ask for the same
  // memory get the same copy.
  virtual DeviceMemory Share(const void* host, std::size_t bytes) = 0;

  // Returns when the bytes are copied.
  virtual void Copy(void* to, const void* from, std::size_t bytes, CopyKind kind) = 0;

  virtual std::unique_ptr<DeviceQueue> NewQueue() = 0;
};

// Makes a queue this thread's for a scope; null: does nothing.
class QueueScope {
 public:
  QueueScope(DeviceQueue* queue, void* stream) : queue_(queue) {
    if (queue_ != nullptr) queue_->Begin(stream);
  }
  ~QueueScope() {
    if (queue_ != nullptr) queue_->End();
  }
  QueueScope(const QueueScope&) = delete;
  QueueScope& operator=(const QueueScope&) = delete;

 private:
  DeviceQueue* const queue_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_DEVICE_H_
