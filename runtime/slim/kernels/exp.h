// Exponential functions of vectors, for kernels.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_EXP_H_
#define AOTI_RUNTIME_SLIM_KERNELS_EXP_H_

#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef uint32_t VecU __attribute__((vector_size(sizeof(VecF))));

// Adding it rounds to an integer, whose last bits are those of a power of 2's exponent: 1.5 * 2^23,
// and the bias of exponents.
constexpr float kMagic = 12582912.0f + 127.0f;

// e^x for x <= 0, within 1.1 ulp; 0 for subnormal results. NaN stays NaN.
inline VecF Exp(VecF x) {
  const VecF magic = Splat(kMagic);
  const VecF shifted = Fma(x, Splat(1.44269504f), magic);
  const VecF n = shifted - magic;
  VecF r = Fma(n, Splat(-0.693359375f), x);  // ln 2 in two parts, the first one exact in 10 bits
  r = Fma(n, Splat(2.12194440e-4f), r);
  // Minimax polynomial of e^r for |r| <= ln(2) / 2, with the terms 1 and r.
  VecF p = Splat(1.38436072e-3f);
  p = Fma(p, r, Splat(8.37419555e-3f));
  p = Fma(p, r, Splat(4.16680053e-2f));
  p = Fma(p, r, Splat(1.66664302e-1f));
  p = Fma(p, r, Splat(4.9999994e-1f));
  p = Fma(p, r, Splat(1.0f));
  p = Fma(p, r, Splat(1.0f));
  const VecF y = p * (VecF)((VecU)shifted << 23);
  return x < Splat(-87.3f) ? VecF{} : y;
}

// 2^x for x <= 0, within 3 ulp; 0 for x < -126. NaN stays NaN.
inline VecF Exp2(VecF x) {
  const VecF magic = Splat(kMagic);
  const VecF shifted = x + magic;
  const VecF r = x - (shifted - magic);
  // Minimax polynomial of 2^r for |r| <= 1/2, which is exact at 0.
  VecF p = Splat(1.32647273e-3f);
  p = Fma(p, r, Splat(9.67151299e-3f));
  p = Fma(p, r, Splat(5.55073358e-2f));
  p = Fma(p, r, Splat(2.40222424e-1f));
  p = Fma(p, r, Splat(6.93147004e-1f));
  p = Fma(p, r, Splat(1.0f));
  const VecF y = p * (VecF)((VecU)shifted << 23);
  return x < Splat(-126.0f) ? VecF{} : y;
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_EXP_H_
