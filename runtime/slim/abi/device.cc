// The C ABI's functions for the current CUDA device and stream. A call runs on one device and one
// stream from its beginning to its end: guards check that, and change nothing.

#include "runtime/core/device_functions.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

// torch's header declares these for builds with CUDA only.
struct CUDAGuardOpaque;
struct CUDAStreamGuardOpaque;
using CUDAGuardHandle = CUDAGuardOpaque*;
using CUDAStreamGuardHandle = CUDAStreamGuardOpaque*;

namespace aoti::slim {
namespace {

void RequireCurrentDevice(std::int32_t index) {
  const std::int32_t current = OnDevices().current_device();
  Require(index < 0 || index == current, "the program switches to cuda:", index,
          " in a call on cuda:", current, ", which is not supported");
}

// Guards have no state; their handles only must not be null.
char g_guard;

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;  // NOLINT: the C ABI's functions are global

extern "C" {

AOTITorchError aoti_torch_create_cuda_guard(int32_t device_index, CUDAGuardHandle* ret_guard) {
  return Guarded([&] {
    RequireCurrentDevice(device_index);
    *ret_guard = reinterpret_cast<CUDAGuardHandle>(&g_guard);
  });
}

AOTITorchError aoti_torch_delete_cuda_guard(CUDAGuardHandle) { return AOTI_TORCH_SUCCESS; }

AOTITorchError aoti_torch_cuda_guard_set_index(CUDAGuardHandle, int32_t device_index) {
  return Guarded([&] { RequireCurrentDevice(device_index); });
}

AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index,
                                                   CUDAStreamGuardHandle* ret_guard) {
  return Guarded([&] {
    RequireCurrentDevice(device_index);
    Require(stream == OnDevices().current_stream(),
            "the program switches to another CUDA stream in a call, which is not supported");
    *ret_guard = reinterpret_cast<CUDAStreamGuardHandle>(&g_guard);
  });
}

AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardHandle) {
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** ret_stream) {
  return Guarded([&] {
    RequireCurrentDevice(device_index);
    *ret_stream = OnDevices().current_stream();
  });
}

// A function that only slim has: says how tensors on CUDA devices are made and copied.
void aoti_slim_set_device_functions(const aoti::internal::DeviceFunctions* functions) {
  SetDeviceFunctions(*functions);
}

}  // extern "C"
