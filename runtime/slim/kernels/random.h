// Converts uniform random numbers to normally distributed ones, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_
#define AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

struct RandomKernels {
  // Converts groups of 16 uniform numbers in [0, 1) to normal ones: numbers i and i + 8 of a group
  // are a pair. size: a multiple of 16. The bits are those of PyTorch on x86 with AVX2.
  void (*normal)(float* data, int64_t size, float mean, float std);
};

AOTI_SLIM_DECLARE_KERNELS(RandomKernels, kRandom)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_
