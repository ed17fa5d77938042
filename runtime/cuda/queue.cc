#include "runtime/cuda/queue.h"

#include <cstdint>
#include <utility>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/open.h"

namespace aoti::cuda {
namespace {

thread_local Queue* t_queue = nullptr;

void CheckIndices(std::uint64_t status) {
  if (status == 0) return;
  const auto index = static_cast<std::int32_t>(status >> 32);
  const auto size = static_cast<std::int64_t>(status & 0xffff'ffff) - 1;
  throw DeviceError(ErrorCode::kExecutionFailed,
                    StrCat("index ", index, " is out of range for a dimension of size ", size));
}

}  // namespace

void CopyOn(CuStream stream, void* to, const void* from, std::size_t bytes, internal::CopyKind kind,
            const Context& context) {
  if (bytes == 0) return;
  CuResult result = kSuccess;
  const char* what = "";
  switch (kind) {
    case internal::CopyKind::kUpload:
      what = " to ";
      result = Driver().MemcpyHtoDAsync(ToPointer(to), from, bytes, stream);
      break;
    case internal::CopyKind::kDownload:
      what = " from ";
      result = Driver().MemcpyDtoHAsync(to, ToPointer(from), bytes, stream);
      break;
    case internal::CopyKind::kOnDevice:
      what = " on ";
      result = Driver().MemcpyDtoDAsync(ToPointer(to), ToPointer(from), bytes, stream);
      break;
  }
  Check(result, [&] { return StrCat("copying ", bytes, " bytes", what, context.Text()); });
}

Queue::Queue(std::shared_ptr<Context> context) : context_(std::move(context)) {
  const Context::Current current(*context_);
  Check(Driver().StreamCreate(&stream_, kStreamNonBlocking),
        [&] { return StrCat("making a stream on ", context_->Text()); });
}

Queue::~Queue() {
  for (Block* block : inputs_) {
    if (block != nullptr) Context::Release(block);
  }
  if (status_ != nullptr) Context::Release(status_);
  context_->Destroy(stream_);
}

Queue& Queue::OfThread() {
  if (t_queue == nullptr) {
    throw DeviceError(ErrorCode::kInternal, "CUDA is used outside of a call of a model");
  }
  return *t_queue;
}

const Modules& Queue::Kernels(const KernelTable& table) {
  if (kernels_ == nullptr || &kernels_->table() != &table) {
    kernels_ = context_->Find(table);
    if (kernels_ == nullptr) {
      throw DeviceError(ErrorCode::kInternal,
                        StrCat("kernels are not loaded on ", context_->Text()));
    }
  }
  return *kernels_;
}

void* Queue::IndexStatus() {
  if (status_ == nullptr) status_ = context_->AllocateBlock(sizeof(std::uint64_t), stream_);
  if (!reports_indices_) {
    Check(Driver().MemsetD8Async(ToPointer(status_->memory), 0, sizeof(std::uint64_t), current_),
          [&] { return StrCat("zeroing a word on ", context_->Text()); });
    reports_indices_ = true;
  }
  return status_->memory;
}

void Queue::Begin(void* stream) {
  context_->Enter();
  current_ = stream == nullptr ? stream_ : static_cast<CuStream>(stream);
  has_work_ = true;
  outer_ = std::exchange(t_queue, this);
}

void Queue::End() noexcept {
  if (has_work_) Driver().StreamSynchronize(current_);
  has_work_ = false;
  reports_indices_ = false;
  t_queue = outer_;
  Context::Leave();
}

void* Queue::Upload(std::size_t number, const void* host, std::size_t bytes) {
  if (inputs_.size() <= number) inputs_.resize(number + 1);
  Block*& block = inputs_[number];
  if (block == nullptr || block->bytes < bytes) {
    if (block != nullptr) Context::Release(std::exchange(block, nullptr));
    block = context_->AllocateBlock(bytes, stream_);
  }
  Copy(block->memory, host, bytes, internal::CopyKind::kUpload);
  return block->memory;
}

internal::DeviceMemory Queue::Allocate(std::size_t bytes) {
  Block* block = context_->AllocateBlock(bytes, current_);
  return {block->memory, [block](void*) { Context::Release(block); }};
}

void Queue::Copy(void* to, const void* from, std::size_t bytes, internal::CopyKind kind) {
  if (recording_ != nullptr && kind != internal::CopyKind::kOnDevice) {
    throw DeviceError(ErrorCode::kExecutionFailed, "a copy to or from the CPU can't be recorded");
  }
  has_work_ = true;
  CopyOn(current_, to, from, bytes, kind, *context_);
}

void Queue::Leave() {
  if (reports_indices_) return Wait();
  has_left_ = true;
  has_work_ = false;
}

void Queue::WaitForOthers() { context_->WaitForAll(); }

std::unique_ptr<internal::DeviceGraph> Queue::NewGraph() {
  return std::make_unique<Graph>(*this, current_);
}

Block* Queue::AllocateBlock(std::size_t bytes) {
  return recording_ != nullptr ? recording_->Allocate(bytes)
                               : context_->AllocateBlock(bytes, current_);
}

CuStream Queue::BeginRecording(GraphMemory& memory) {
  recording_ = &memory;
  // Not on the caller's stream, to which other threads may give work that is to be done.
  return std::exchange(current_, stream_);
}

bool Queue::EndRecording(CuStream stream) noexcept {
  recording_ = nullptr;
  current_ = stream;
  return std::exchange(reports_indices_, false);
}

void Queue::NoteReplay(bool reports_indices) {
  has_work_ = true;
  reports_indices_ = reports_indices;
}

void Queue::WaitForLeft() {
  if (std::exchange(has_left_, false)) context_->WaitForAll();
}

void Queue::Wait() {
  std::uint64_t status = 0;
  if (reports_indices_) {
    Copy(&status, status_->memory, sizeof(status), internal::CopyKind::kDownload);
  }
  reports_indices_ = false;
  has_work_ = false;
  Check(Driver().StreamSynchronize(current_),
        [&] { return StrCat("running on ", context_->Text()); });
  CheckIndices(status);
}

void Launch(const KernelTable& table, std::uint32_t kernel, std::uint32_t grid_x,
            std::uint32_t grid_y, std::uint32_t grid_z, void** arguments, void* stream) {
  Queue::OfThread().Kernels(table).Launch(kernel, grid_x, grid_y, grid_z, arguments,
                                          static_cast<CuStream>(stream));
}

void* IndexStatus() { return Queue::OfThread().IndexStatus(); }

const internal::DeviceFunctions& TensorFunctions() {
  static constexpr internal::DeviceFunctions kFunctions = {
      .allocate = [](std::size_t bytes, std::int32_t index, void** owner) -> void* {
        Queue& queue = Queue::OfThread();
        const std::int32_t current = queue.context().number().index;
        if (index >= 0 && index != current) {
          throw DeviceError(
              ErrorCode::kExecutionFailed,
              StrCat("the program makes a tensor on cuda:", index, " in a call on cuda:", current));
        }
        Block* block = queue.AllocateBlock(bytes);
        *owner = block;
        return block->memory;
      },
      .release = [](void* owner) noexcept { Context::Release(static_cast<Block*>(owner)); },
      .copy =
          [](void* to, const void* from, std::size_t bytes, internal::CopyKind kind) {
            Queue& queue = Queue::OfThread();
            queue.Copy(to, from, bytes, kind);
            if (kind != internal::CopyKind::kOnDevice) queue.Wait();
          },
      .zero =
          [](void* memory, std::size_t bytes) {
            Queue& queue = Queue::OfThread();
            Check(Driver().MemsetD8Async(ToPointer(memory), 0, bytes, queue.cu_stream()),
                  [&] { return StrCat("zeroing ", bytes, " bytes on ", queue.context().Text()); });
          },
      .current_device = [] { return Queue::OfThread().context().number().index; },
      .current_stream = [] { return Queue::OfThread().stream(); },
      .is_recording = [] { return t_queue != nullptr && t_queue->is_recording(); },
  };
  return kFunctions;
}

}  // namespace aoti::cuda
