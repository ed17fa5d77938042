// Launches of a program whose products have all their candidates: which of them run, and how long.
// Only NAME.tune has such programs; others don't link this.

#ifndef AOTI_RUNTIME_CUDA_MEASURING_H_
#define AOTI_RUNTIME_CUDA_MEASURING_H_

#include <cstdint>

#include "runtime/cuda/kernel_table.h"

namespace aoti::cuda {

// The number of the kernel that each product runs, of so many: the environment variable
// AOTI_CUDA_CANDIDATE, and the last kernel of a product that has fewer.
std::uint32_t MeasuredOf(std::uint32_t count);

// Launches a kernel of a product, and appends a line to the file that the environment variable
// AOTI_CUDA_TIMES names: "PRODUCT ROWS MICROSECONDS", by events of the stream. The first line is
// "sm_80 NAME" of the device.
//
// product: the number of its first kernel. repeats: whether it computes the same when it runs
// again; then the time is the mean of several launches. Throws DeviceError.
void LaunchMeasured(const KernelTable& table, std::uint32_t kernel, std::uint32_t product,
                    std::int64_t rows, bool repeats, std::uint32_t grid_x, std::uint32_t grid_y,
                    std::uint32_t grid_z, void** arguments, void* stream);

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_MEASURING_H_
