#include "aoti/tensor.h"

#include <new>

#include "runtime/core/dtype_table.h"

namespace aoti {
namespace {

dlpack::DLDataType ToDLDataType(DType dtype) {
  const internal::DTypeFacts* facts = internal::FactsOf(dtype);
  if (facts == nullptr) return {dlpack::kDLInt, 0, 1};
  return {facts->code, static_cast<std::uint8_t>(facts->bytes * 8), 1};
}

dlpack::DLDevice DeviceOf(const Tensor& tensor) {
  if (tensor.cuda_device() == TensorView::kCpu) return {dlpack::kDLCPU, 0};
  return {dlpack::kDLCUDA, tensor.cuda_device()};
}

// The memory that a DLPack consumer holds: the tensor, and the arrays that the consumer reads.
template <typename Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;

  static Managed* Make(Tensor tensor) {
    auto* self = new Export;
    self->tensor = std::move(tensor);
    self->sizes.assign(self->tensor.sizes().begin(), self->tensor.sizes().end());
    self->strides.resize(self->sizes.size());
    std::int64_t stride = 1;
    for (std::size_t d = self->sizes.size(); d-- > 0;) {
      self->strides[d] = stride;
      stride *= self->sizes[d] > 1 ? self->sizes[d] : 1;
    }
    self->managed.manager_ctx = self;
    self->managed.deleter = [](Managed* managed) {
      delete static_cast<Export*>(managed->manager_ctx);
    };
    self->managed.dl_tensor = {
        .data = self->tensor.data(),
        .device = DeviceOf(self->tensor),
        .ndim = static_cast<std::int32_t>(self->sizes.size()),
        .dtype = ToDLDataType(self->tensor.dtype()),
        .shape = self->sizes.data(),
        .strides = self->strides.data(),
        .byte_offset = 0,
    };
    return &self->managed;
  }
};

}  // namespace

Tensor Tensor::Adopt(void* data, DType dtype, std::vector<std::int64_t> sizes, void* owner,
                     Deleter deleter, std::int32_t cuda_device) {
  Tensor tensor;
  tensor.data_ = data;
  tensor.dtype_ = dtype;
  tensor.cuda_device_ = cuda_device;
  tensor.sizes_ = std::move(sizes);
  tensor.owner_ = {owner, deleter};
  return tensor;
}

std::int64_t Tensor::numel() const {
  if (data_ == nullptr) return 0;  // no tensor, or one without elements
  std::int64_t numel = 1;
  for (const std::int64_t size : sizes_) numel *= size;
  return numel;
}

TensorView Tensor::view() const& {
  return {.data = data_,
          .dtype = dtype_,
          .sizes = sizes_,
          .strides = {},
          .read_only = false,
          .cuda_device = cuda_device_};
}

dlpack::DLManagedTensor* Tensor::ToDLPack() && {
  return Export<dlpack::DLManagedTensor>::Make(std::move(*this));
}

dlpack::DLManagedTensorVersioned* Tensor::ToDLPackVersioned() && {
  dlpack::DLManagedTensorVersioned* managed =
      Export<dlpack::DLManagedTensorVersioned>::Make(std::move(*this));
  managed->version = dlpack::kVersion;
  return managed;
}

}  // namespace aoti
