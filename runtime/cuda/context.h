// One CUDA device: its context, memory and kernels, which all programs on it share.

#ifndef AOTI_RUNTIME_CUDA_CONTEXT_H_
#define AOTI_RUNTIME_CUDA_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/core/device.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/kernel_table.h"
#include "runtime/cuda/memory_pool.h"
#include "runtime/cuda/modules.h"

namespace aoti::cuda {

// Exists as long as a program, a queue or memory of the device does. Holds the device's primary
// context, which it shares with other libraries.
class Context final : public internal::Device, public std::enable_shared_from_this<Context> {
 public:
  // The one for this index. Throws DeviceError.
  static std::shared_ptr<Context> Open(int index);
  ~Context() override;

  // "device 0 (NVIDIA H100)"
  std::string Text() const;
  // 80 for sm_80.
  std::uint32_t arch() const { return arch_; }

  // A program's kernels, which are loaded once. Throws DeviceError.
  std::shared_ptr<const Modules> Load(const KernelTable& kernels);
  // The same for kernels that are loaded; null if they are not.
  std::shared_ptr<const Modules> Find(const KernelTable& kernels);

  // Memory from the pool, for work on a stream. Throws DeviceError. The context is current.
  Block* AllocateBlock(std::size_t bytes, CuStream stream);
  static void Release(Block* block) noexcept;

  // Makes the context this thread's in a scope.
  class Current {
   public:
    explicit Current(const Context& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
  };
  void Enter() const;
  static void Leave() noexcept;

  // Waits for all work that was asked of the device. The context is current.
  void WaitForAll();
  // Held while a stream records: the driver can't wait for all work then.
  std::mutex& recording() { return recording_; }

  // Waits for a stream and destroys it, and returns its free memory.
  void Destroy(CuStream stream) noexcept;

  // Device:
  internal::DeviceNumber number() const override { return {.type = 1, .index = index_}; }
  internal::DeviceMemory Allocate(std::size_t bytes) override;
  internal::DeviceMemory Share(const void* host, std::size_t bytes) override;
  void Copy(void* to, const void* from, std::size_t bytes, internal::CopyKind kind) override;
  std::unique_ptr<internal::DeviceQueue> NewQueue() override;

 private:
  Context(int index, CuDevice device);

  const int index_;
  const CuDevice device_;
  std::string name_;
  std::uint32_t arch_ = 0;
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;  // of Copy()
  MemoryPool pool_;

  std::mutex recording_;
  std::mutex mutex_;
  // The rest is guarded by mutex_.
  std::map<const KernelTable*, std::weak_ptr<const Modules>> modules_;
  std::map<std::pair<const void*, std::size_t>, std::weak_ptr<void>> shared_;
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_CONTEXT_H_
