// Normally distributed numbers from uniform ones, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_
#define AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_

#include <stdint.h>

namespace aoti::slim {

struct RandomKernels {
  // Turns groups of 16 uniform numbers in [0, 1) into normal ones: numbers i and i + 8 of a group
  // are a pair. size: a multiple of 16. The bits are those of PyTorch on x86 with AVX2.
  void (*normal)(float* data, int64_t size, float mean, float std);
};

#define AOTI_RANDOM_KERNELS(isa)      \
  namespace isa {                     \
  extern const RandomKernels kRandom; \
  }
#if defined(__x86_64__)
AOTI_RANDOM_KERNELS(baseline)
AOTI_RANDOM_KERNELS(x86_v3)
AOTI_RANDOM_KERNELS(x86_v4)
#else
AOTI_RANDOM_KERNELS(neon)
#endif
#undef AOTI_RANDOM_KERNELS

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_RANDOM_H_
