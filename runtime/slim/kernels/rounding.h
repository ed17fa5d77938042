// Sizes in numbers of tiles and panels.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_ROUNDING_H_
#define AOTI_RUNTIME_SLIM_KERNELS_ROUNDING_H_

#include <stdint.h>

namespace aoti::slim {

// For sizes of 0 or more. Always inlined, because a copy that was compiled for one level of the CPU
// must not be used for others; see simd.h.
[[gnu::always_inline]] constexpr int64_t CeilDiv(int64_t size, int64_t unit) {
  return (size + unit - 1) / unit;
}
[[gnu::always_inline]] constexpr int64_t RoundUp(int64_t size, int64_t unit) {
  return CeilDiv(size, unit) * unit;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_ROUNDING_H_
