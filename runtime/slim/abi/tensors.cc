// The C ABI's functions that create, inspect, view and copy tensors.

#include <cstring>

#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

Ints Span(const std::int64_t* values, std::int64_t count) {
  return {values, static_cast<std::size_t>(count)};
}

// The storage's number of a device: see kOnCpu.
std::int32_t DeviceOf(std::int32_t type, std::int32_t index) {
  if (type == aoti_torch_device_type_cpu()) return kOnCpu;
  Require(type == aoti_torch_device_type_cuda(), "device type ", type,
          " is not supported, only the CPU and CUDA are");
  return index < 0 ? OnDevices().current_device() : index;
}

// The number of bytes from the beginning of the storage to the end of the last element.
std::size_t StorageBytes(Ints sizes, Ints strides, std::int64_t offset, ScalarType dtype) {
  std::int64_t last = offset;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return static_cast<std::size_t>(offset) * SizeOf(dtype);
    last += (sizes[d] - 1) * strides[d];
  }
  return static_cast<std::size_t>(last + 1) * SizeOf(dtype);
}

TensorPtr FromBlob(void* data, Ints sizes, Ints strides, std::int64_t offset, ScalarType dtype,
                   std::int32_t device) {
  Storage* storage = Storage::Borrow(data, StorageBytes(sizes, strides, offset, dtype), device);
  return TensorPtr(new Tensor(storage, dtype, sizes, strides, offset));
}

// A copy with the same strides, including gaps between elements.
TensorPtr ClonePreservingStrides(const Tensor& self) {
  const std::int32_t device = self.storage().device();
  TensorPtr copy = EmptyStrided(self.dtype(), self.sizes(), self.strides(), device);
  const std::size_t bytes = copy->storage().bytes();
  if (bytes > 0 && device != kOnCpu) {
    OnDevices().copy(copy->address(), self.address(), bytes, internal::CopyKind::kOnDevice);
  } else if (bytes > 0) {
    std::memcpy(copy->data(), self.data(), bytes);
  }
  return copy;
}

std::int64_t CheckedDim(AtenTensorHandle tensor, std::int64_t dim) {
  Require(tensor->rank() > 0, "a scalar has no dim ", dim);
  return WrapDim(dim, tensor->rank());
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;  // NOLINT: the C ABI's functions are global

extern "C" {

AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  delete tensor;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** ret_data_ptr) {
  *ret_data_ptr = tensor->address();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* ret_size) {
  *ret_size = static_cast<int64_t>(tensor->storage().bytes());
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* ret_numel) {
  *ret_numel = static_cast<int64_t>(tensor->storage().bytes() / SizeOf(tensor->dtype()));
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret_dim) {
  *ret_dim = tensor->rank();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret_numel) {
  *ret_numel = tensor->numel();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret_sizes) {
  *ret_sizes = tensor->dims().sizes_data();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret_strides) {
  *ret_strides = tensor->dims().strides_data();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* ret_size) {
  return Guarded([&] { *ret_size = tensor->size(CheckedDim(tensor, d)); });
}

AOTITorchError aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* ret_stride) {
  return Guarded([&] { *ret_stride = tensor->stride(CheckedDim(tensor, d)); });
}

AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret_dtype) {
  *ret_dtype = static_cast<int32_t>(tensor->dtype());
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* ret_device_type) {
  *ret_device_type = tensor->storage().device() == kOnCpu ? aoti_torch_device_type_cpu()
                                                          : aoti_torch_device_type_cuda();
  return AOTI_TORCH_SUCCESS;
}

// -1 for the CPU.
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* ret_device_index) {
  *ret_device_index = tensor->storage().device();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_layout(AtenTensorHandle, int32_t* ret_layout) {
  *ret_layout = aoti_torch_layout_strided();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* ret_storage_offset) {
  *ret_storage_offset = tensor->offset();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* ret_is_contiguous) {
  *ret_is_contiguous = tensor->is_contiguous();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret_is_defined) {
  *ret_is_defined = tensor != nullptr;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle orig_handle,
                                            AtenTensorHandle* new_handle) {
  return Guarded([&] { *new_handle = new Tensor(*orig_handle); });
}

AOTITorchError aoti_torch__alloc_from_pool(AtenTensorHandle self, int64_t offset_bytes,
                                           int32_t dtype, int64_t ndim, const int64_t* sizes_ptr,
                                           const int64_t* strides_ptr,
                                           AtenTensorHandle* ret_new_tensor) {
  return Guarded([&] {
    const auto type = static_cast<ScalarType>(dtype);
    const auto size = static_cast<int64_t>(SizeOf(type));
    Require(offset_bytes % size == 0, "an offset of ", offset_bytes,
            " bytes is not a multiple of the element size ", size);
    self->storage().Retain();
    *ret_new_tensor = new Tensor(&self->storage(), type, Span(sizes_ptr, ndim),
                                 Span(strides_ptr, ndim), offset_bytes / size);
  });
}

AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim,
                                              const int64_t* sizes_ptr, const int64_t* strides_ptr,
                                              int64_t storage_offset,
                                              AtenTensorHandle* ret_new_tensor) {
  return Guarded([&] {
    *ret_new_tensor =
        View(*self, Span(sizes_ptr, ndim), Span(strides_ptr, ndim), self->offset() + storage_offset)
            .release();
  });
}

AOTITorchError aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes_ptr,
                                     const int64_t* strides_ptr, AtenTensorHandle* ret) {
  return aoti_torch__reinterpret_tensor(self, self->rank(), sizes_ptr, strides_ptr, 0, ret);
}

AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes_ptr,
                                        const int64_t* strides_ptr, int32_t dtype,
                                        int32_t device_type, int32_t device_index,
                                        AtenTensorHandle* ret_new_tensor) {
  return Guarded([&] {
    *ret_new_tensor = EmptyStrided(static_cast<ScalarType>(dtype), Span(sizes_ptr, ndim),
                                   Span(strides_ptr, ndim), DeviceOf(device_type, device_index))
                          .release();
  });
}

// The same as aoti_torch_empty_strided: pinned memory would only make copies to a GPU faster.
AOTITorchError aoti_torch_empty_strided_pinned(int64_t ndim, const int64_t* sizes_ptr,
                                               const int64_t* strides_ptr, int32_t dtype,
                                               int32_t device_type, int32_t device_index,
                                               AtenTensorHandle* ret_new_tensor) {
  return aoti_torch_empty_strided(ndim, sizes_ptr, strides_ptr, dtype, device_type, device_index,
                                  ret_new_tensor);
}

AOTITorchError aoti_torch_create_tensor_from_blob(void* data, int64_t ndim,
                                                  const int64_t* sizes_ptr,
                                                  const int64_t* strides_ptr,
                                                  int64_t storage_offset, int32_t dtype,
                                                  int32_t device_type, int32_t device_index,
                                                  AtenTensorHandle* ret) {
  return Guarded([&] {
    *ret = FromBlob(data, Span(sizes_ptr, ndim), Span(strides_ptr, ndim), storage_offset,
                    static_cast<ScalarType>(dtype), DeviceOf(device_type, device_index))
               .release();
  });
}

AOTITorchError aoti_torch_create_tensor_from_blob_v2(
    void* data, int64_t ndim, const int64_t* sizes_ptr, const int64_t* strides_ptr,
    int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index,
    AtenTensorHandle* ret, int32_t layout, const uint8_t*, int64_t) {
  const AOTITorchError status = Guarded([&] {
    Require(layout == aoti_torch_layout_strided(), "layout number ", layout,
            " is not supported, only strided tensors are");
  });
  if (status != AOTI_TORCH_SUCCESS) return status;
  return aoti_torch_create_tensor_from_blob(data, ndim, sizes_ptr, strides_ptr, storage_offset,
                                            dtype, device_type, device_index, ret);
}

AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret) {
  return Guarded([&] { *ret = Empty(ScalarType::kFloat32, {0}).release(); });
}

AOTITorchError aoti_torch_tensor_copy_(AtenTensorHandle src, AtenTensorHandle dst) {
  return Guarded([&] { Copy(*dst, *src); });
}

AOTITorchError aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t) {
  return Guarded([&] { Copy(*self, *src); });
}

AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst) {
  return Guarded([&] { *dst = *src; });
}

AOTITorchError aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle* ret_dst) {
  return aoti_torch_new_tensor_handle(src, ret_dst);
}

AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret) {
  return Guarded([&] {
    TensorPtr copy = EmptyLike(*self);
    Copy(*copy, *self);
    *ret = copy.release();
  });
}

AOTITorchError aoti_torch_clone_preserve_strides(AtenTensorHandle self, AtenTensorHandle* ret) {
  return Guarded([&] { *ret = ClonePreservingStrides(*self).release(); });
}

AOTITorchError aoti_torch_zero_(AtenTensorHandle self) {
  return Guarded([&] {
    if (self->numel() == 0) return;
    const auto bytes = static_cast<std::size_t>(self->numel()) * SizeOf(self->dtype());
    if (self->storage().device() != kOnCpu && self->is_contiguous()) {
      OnDevices().zero(self->address(), bytes);
      return;
    }
    if (self->is_contiguous()) {
      std::memset(self->data(), 0, bytes);
      return;
    }
    DispatchBySize(self->dtype(), [&]<typename T>() {
      T* data = self->data<T>();
      ForEachOffset(self->sizes(), {self->strides()},
                    [&](const std::int64_t* offset) { data[*offset] = T(0); });
    });
  });
}

// A function that only slim has: attaches a packed copy to a constant and to all tensors that share
// its memory.
AOTITorchError aoti_slim_set_packed(AtenTensorHandle tensor, const char* kind, const void* data,
                                    std::size_t bytes) {
  return Guarded([&] {
    Storage& storage = tensor->storage();
    delete storage.packed;
    storage.packed = new PackedWeight{kind, data, bytes};
  });
}

}  // extern "C"
