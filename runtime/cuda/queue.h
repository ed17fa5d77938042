// A stream of a device, with the memory of the inputs of its calls.

#ifndef AOTI_RUNTIME_CUDA_QUEUE_H_
#define AOTI_RUNTIME_CUDA_QUEUE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/core/device.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/graph_memory.h"
#include "runtime/cuda/modules.h"

namespace aoti::cuda {

// Asks for a copy on a stream. The context is current. Throws DeviceError.
void CopyOn(CuStream stream, void* to, const void* from, std::size_t bytes, internal::CopyKind kind,
            const Context& context);

class Queue final : public internal::DeviceQueue {
 public:
  explicit Queue(std::shared_ptr<Context> context);
  ~Queue() override;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The one that this thread is in. Throws DeviceError if there is none.
  static Queue& OfThread();

  Context& context() { return *context_; }
  bool is_recording() const { return recording_ != nullptr; }
  CuStream cu_stream() const { return current_; }
  // Throws DeviceError if no model on the device has these kernels.
  const Modules& Kernels(const KernelTable& table);
  // As cuda::IndexStatus(). Wait() reads the word and throws DeviceError for an index.
  void* IndexStatus();

  void Begin(void* stream) override;
  void End() noexcept override;
  void Leave() override;
  void WaitForOthers() override;
  void* stream() const override { return current_; }
  void* Upload(std::size_t number, const void* host, std::size_t bytes) override;
  internal::DeviceMemory Allocate(std::size_t bytes) override;
  void Copy(void* to, const void* from, std::size_t bytes, internal::CopyKind kind) override;
  void Wait() override;
  std::unique_ptr<internal::DeviceGraph> NewGraph() override;

  // Memory for a tensor of generated code.
  Block* AllocateBlock(std::size_t bytes);

  // Between these two, work on the queue is recorded on its own stream, and not done; memory comes
  // from `memory`. BeginRecording() returns the call's stream, which EndRecording() takes.
  CuStream BeginRecording(GraphMemory& memory);
  // Returns whether kernels got the status.
  bool EndRecording(CuStream stream) noexcept;
  // What was recorded is asked for. reports_indices: what EndRecording() returned.
  void NoteReplay(bool reports_indices);
  // Waits for work that Leave() let go on, on whatever stream.
  void WaitForLeft();

 private:
  const std::shared_ptr<Context> context_;
  CuStream stream_ = nullptr;         // its own, to which the memory of inputs belongs
  CuStream current_ = nullptr;        // of the call
  bool has_work_ = false;             // that the host did not wait for
  bool has_left_ = false;             // whether Leave() ever let work go on
  GraphMemory* recording_ = nullptr;  // null: work is done
  Queue* outer_ = nullptr;            // that the thread was in before
  std::vector<Block*> inputs_;
  Block* status_ = nullptr;
  bool reports_indices_ = false;            // whether kernels got the status since the last Wait()
  std::shared_ptr<const Modules> kernels_;  // those of the last launch
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_QUEUE_H_
