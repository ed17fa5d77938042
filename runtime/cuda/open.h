// What a program for CUDA gives to the core.

#ifndef AOTI_RUNTIME_CUDA_OPEN_H_
#define AOTI_RUNTIME_CUDA_OPEN_H_

#include <cstdint>
#include <memory>

#include "runtime/core/device.h"
#include "runtime/core/device_functions.h"
#include "runtime/cuda/kernel_table.h"

namespace aoti::cuda {

// ProgramVTable::open_device.
std::shared_ptr<internal::Device> Open(const KernelTable& kernels, std::int32_t index);

// How tensors of the slim runtime use the queue that the thread is in.
const internal::DeviceFunctions& TensorFunctions();

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_OPEN_H_
