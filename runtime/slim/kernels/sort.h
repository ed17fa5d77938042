// Finds elements of a line that are beyond a bound.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_SORT_H_
#define AOTI_RUNTIME_SLIM_KERNELS_SORT_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

// All return the first i in from..size, or `size` if there is none. The bound is not NaN.
struct SortKernels {
  // line[i] is greater than the bound, or NaN.
  int64_t (*find_greater)(const float* line, int64_t from, int64_t size, float bound);
  int64_t (*find_less)(const float* line, int64_t from, int64_t size, float bound);
  // The same for 16-bit types, which are identified by the bits of their infinity; +0 is greater
  // than -0.
  int64_t (*find_greater16)(const uint16_t* line, int64_t from, int64_t size, uint16_t bound,
                            uint16_t infinity);
  int64_t (*find_less16)(const uint16_t* line, int64_t from, int64_t size, uint16_t bound,
                         uint16_t infinity);
};

AOTI_SLIM_DECLARE_KERNELS(SortKernels, kSort)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_SORT_H_
