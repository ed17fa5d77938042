// The parts of a call that only programs on a device have: see device.h.

#include <algorithm>
#include <utility>

#include "runtime/core/layout.h"
#include "runtime/core/runner.h"

namespace aoti::internal {
namespace {

bool IsOnDevice(const TensorView& input) { return input.cuda_device != TensorView::kCpu; }

}  // namespace

void Runner::WaitForInputs(std::span<const TensorView> inputs, const RunOptions& options) {
  if (options.cuda_stream == nullptr && std::ranges::any_of(inputs, IsOnDevice)) {
    queue_->WaitForOthers();
  }
}

const void* Runner::DownloadInput(const TensorView& given, Buffer& buffer) {
  const AddressRange range = RangeOf(given).value_or(AddressRange());
  buffer = Buffer(range.end - range.begin);
  queue_->Copy(buffer.data(), reinterpret_cast<const void*>(range.begin), buffer.size(),
               CopyKind::kDownload);
  queue_->Wait();
  return static_cast<const std::byte*>(buffer.data()) +
         (reinterpret_cast<std::uintptr_t>(given.data) - range.begin);
}

void Runner::DownloadInputs(std::span<const TensorView> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!spec_.inputs[i].mutated || IsOnDevice(inputs[i])) continue;
    const Range& range = taken_[i];
    queue_->Copy(inputs[i].data, range.begin, static_cast<std::size_t>(range.end - range.begin),
                 CopyKind::kDownload);
  }
}

Tensor Runner::CopyOutput(const HandleInfo& info, DType dtype, bool on_device) {
  const std::size_t element_size = SizeOf(dtype);
  std::vector<std::int64_t> strides(info.sizes.size());
  ContiguousStrides(info.sizes, strides.data());
  const auto bytes_of = [&](const std::int64_t* of) {
    return element_size * static_cast<std::size_t>(StorageElements(info.sizes, of));
  };
  const std::size_t bytes = bytes_of(strides.data());
  const bool contiguous = SameLayout(info.sizes, strides.data(), info.strides);
  Buffer copy;
  if (!on_device || !contiguous) copy = Buffer(bytes);
  if (!contiguous) {
    const Buffer stored(bytes_of(info.strides));
    queue_->Copy(stored.data(), info.data, stored.size(), CopyKind::kDownload);
    queue_->Wait();
    CopyStrided(info.sizes, element_size, stored.data(), info.strides, copy.data(), strides.data());
  } else if (!on_device) {
    queue_->Copy(copy.data(), info.data, bytes, CopyKind::kDownload);
  }
  std::vector<std::int64_t> sizes(info.sizes.begin(), info.sizes.end());
  if (!on_device) {
    void* data = copy.data();
    return Tensor::Adopt(data, dtype, std::move(sizes), copy.release(), &Buffer::Free);
  }
  auto memory = std::make_unique<DeviceMemory>(queue_->Allocate(bytes));
  void* data = memory->get();
  queue_->Copy(data, contiguous ? info.data : copy.data(), bytes,
               contiguous ? CopyKind::kOnDevice : CopyKind::kUpload);
  if (!contiguous) queue_->Wait();  // before the copy's memory is freed
  return Tensor::Adopt(
      data, dtype, std::move(sizes), memory.release(),
      [](void* owner) { delete static_cast<DeviceMemory*>(owner); }, plan_.cuda_device);
}

void Runner::Finish(std::span<const TensorView> inputs, const RunOptions& options) {
  outputs_.clear();
  const bool waits = options.cuda_stream == nullptr || !options.outputs_on_device ||
                     state_id_ != 0 || !std::ranges::all_of(inputs, IsOnDevice);
  if (waits) {
    queue_->Wait();
  } else {
    queue_->Leave();
  }
}

}  // namespace aoti::internal
