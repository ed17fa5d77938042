// Tensors on a CUDA device: only the C ABI's functions that make, view and copy tensors know them.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_DEVICE_H_
#define AOTI_RUNTIME_SLIM_TENSOR_DEVICE_H_

#include <cstdint>
#include <memory>

#include "runtime/core/device_functions.h"

struct AtenTensorOpaque;

namespace aoti::slim {

// Stands for the CPU where the index of a CUDA device is expected.
inline constexpr std::int32_t kOnCpu = -1;

// How to reach devices. Throws OpError in a program without CUDA.
const internal::DeviceFunctions& OnDevices();
void SetDeviceFunctions(const internal::DeviceFunctions& functions);

// Whether this thread's work is recorded, to be repeated without the work of the CPU.
bool IsRecording();

// Copies between tensors of one dtype and layout without gaps, of which at least one is on a
// device.
void CopyOnDevices(const AtenTensorOpaque& to, const AtenTensorOpaque& from);

// A copy of a tensor without gaps in the CPU's memory.
std::unique_ptr<AtenTensorOpaque> Downloaded(const AtenTensorOpaque& tensor);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_DEVICE_H_
