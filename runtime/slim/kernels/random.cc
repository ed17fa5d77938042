#include "runtime/slim/kernels/random.h"

#include <math.h>
#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__)
// Functions that take 32-byte vectors are all inlined, so the calling convention without AVX does
// not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// PyTorch uses Cephes' polynomials on 8 lanes, and its compiler fuses multiplications with the
// additions that follow. The fused operations are explicit here, so that all CPUs give the same
// bits.
typedef float Vec8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));
typedef float Vec8Any __attribute__((vector_size(32), aligned(4), may_alias));

inline __attribute__((always_inline)) Vec8 Splat8(float x) { return x - Vec8{}; }

// a * b + c, rounded once
inline __attribute__((always_inline)) Vec8 Fused(Vec8 a, Vec8 b, Vec8 c) {
  Vec8 result;
  for (int i = 0; i < 8; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
}

inline __attribute__((always_inline)) Vec8 Choose(Int8 mask, Vec8 yes, Vec8 no) {
  return (Vec8)((mask & (Int8)yes) | (~mask & (Int8)no));
}

// The natural logarithm of a normal, positive x.
inline __attribute__((always_inline)) Vec8 Log(Vec8 x) {
  Int8 exponent = ((Int8)x >> 23) - 126;
  x = (Vec8)(((Int8)x & 0x007fffff) | 0x3f000000);  // 0.5 .. 1
  const Int8 small = x < Splat8(0.707106781186547524f);
  exponent += small;
  x = (x - 1.0f) + Choose(small, x, Vec8{});
  const Vec8 e = __builtin_convertvector(exponent, Vec8);
  const Vec8 square = x * x;
  Vec8 y = Fused(Splat8(7.0376836292e-2f), x, Splat8(-1.1514610310e-1f));
  y = Fused(y, x, Splat8(1.1676998740e-1f));
  y = Fused(y, x, Splat8(-1.2420140846e-1f));
  y = Fused(y, x, Splat8(1.4249322787e-1f));
  y = Fused(y, x, Splat8(-1.6668057665e-1f));
  y = Fused(y, x, Splat8(2.0000714765e-1f));
  y = Fused(y, x, Splat8(-2.4999993993e-1f));
  y = Fused(y, x, Splat8(3.3333331174e-1f));
  y = Fused(y * x, square, e * -2.12194440e-4f);
  y = Fused(square, Splat8(-0.5f), y);
  return Fused(e, Splat8(0.693359375f), x + y);
}

// Sine and cosine of 0 <= x < 8192.
inline __attribute__((always_inline)) void SinCos(Vec8 x, Vec8* sine, Vec8* cosine) {
  // Multiples of pi/4, rounded up to the next even one.
  const Int8 octant = (__builtin_convertvector(x * 1.27323954473516f, Int8) + 1) & ~1;
  const Vec8 multiple = __builtin_convertvector(octant, Vec8);
  x = Fused(multiple, Splat8(-0.78515625f), x);
  x = Fused(multiple, Splat8(-2.4187564849853515625e-4f), x);
  x = Fused(multiple, Splat8(-3.77489497744594108e-8f), x);
  const Vec8 square = x * x;
  Vec8 even = Fused(Splat8(2.443315711809948e-5f), square, Splat8(-1.388731625493765e-3f));
  even = Fused(even, square, Splat8(4.166664568298827e-2f));
  even = Fused(even * square, square, square * -0.5f) + 1.0f;
  Vec8 odd = Fused(Splat8(-1.9515295891e-4f), square, Splat8(8.3321608736e-3f));
  odd = Fused(odd, square, Splat8(-1.6666654611e-1f));
  odd = Fused(odd * square, x, x);
  const Int8 straight = (octant & 2) == 0;
  const Int8 sine_sign = (octant & 4) << 29;
  const Int8 cosine_sign = (~(octant - 2) & 4) << 29;
  *sine = (Vec8)((Int8)Choose(straight, odd, even) ^ sine_sign);
  *cosine = (Vec8)((Int8)Choose(straight, even, odd) ^ cosine_sign);
}

void Normal(float* data, int64_t size, float mean, float std) {
  for (int64_t i = 0; i < size; i += 16) {
    Vec8Any* first = reinterpret_cast<Vec8Any*>(data + i);
    Vec8Any* second = reinterpret_cast<Vec8Any*>(data + i + 8);
    const Vec8 square = -2.0f * Log(1.0f - *first);
    Vec8 radius;
    for (int lane = 0; lane < 8; ++lane) radius[lane] = __builtin_sqrtf(square[lane]);
    Vec8 sine, cosine;
    SinCos(*second * 6.283185307179586f, &sine, &cosine);
    *first = Fused(radius * cosine, Splat8(std), Splat8(mean));
    *second = Fused(radius * sine, Splat8(std), Splat8(mean));
  }
}

}  // namespace

extern const RandomKernels kRandom = {Normal};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
