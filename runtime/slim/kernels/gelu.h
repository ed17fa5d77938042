// gelu(x) = x / 2 * (1 + erf(x / sqrt(2))), for kernels.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GELU_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GELU_H_

#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// The error is at most 2e-7 * |x|. NaN stays NaN.
inline VecF Gelu(VecF x) {
  // From here on, erf(x / sqrt(2)) is 1 in float.
  constexpr float kLimit = 5.5f;
  VecF t = x < -kLimit ? Splat(-kLimit) : x;
  t = t > kLimit ? Splat(kLimit) : t;
  const VecF z = t * t;
  // erf(x / sqrt(2)) / x = p(x^2) / q(x^2), a minimax approximation whose relative error is 2e-8.
  VecF p = Splat(4.58626452e-8f);
  p = Fma(p, z, Splat(1.26031446e-5f));
  p = Fma(p, z, Splat(3.29142669e-4f));
  p = Fma(p, z, Splat(9.30293463e-3f));
  p = Fma(p, z, Splat(6.69173151e-2f));
  p = Fma(p, z, Splat(7.97884524e-1f));
  VecF q = Splat(1.19903189e-6f);
  q = Fma(q, z, Splat(7.21662582e-5f));
  q = Fma(q, z, Splat(1.86063221e-3f));
  q = Fma(q, z, Splat(2.84159947e-2f));
  q = Fma(q, z, Splat(2.50534803e-1f));
  q = Fma(q, z, Splat(1.0f));
  VecF erf = Ratio(t * p, q);
  erf = x <= -kLimit ? Splat(-1) : erf;
  erf = x >= kLimit ? Splat(1) : erf;
  const VecF half = 0.5f * x;
  return Fma(half, erf, half);
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GELU_H_
