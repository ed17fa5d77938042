// The kernels of the tests' programs: PTX for real drivers and the emulator, which the fake driver
// runs as C++ functions.

#ifndef AOTI_RUNTIME_CUDA_TESTS_TEST_KERNELS_H_
#define AOTI_RUNTIME_CUDA_TESTS_TEST_KERNELS_H_

#include <cstdint>

#include "runtime/cuda/kernel_table.h"

namespace aoti::testing {

// Numbers in the table.
inline constexpr std::uint32_t kAddRow = 0;      // x, row, y, n: y[i] = x[i] + row[i % 4]
inline constexpr std::uint32_t kAccumulate = 1;  // x, total, n: total[i] += x[i]
inline constexpr std::uint32_t kCheckIndex = 2;  // x, status: reports x[0] as an index below 4

inline constexpr std::uint32_t kTestThreads = 32;  // of a block

extern const cuda::KernelTable kTestKernels;

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_CUDA_TESTS_TEST_KERNELS_H_
