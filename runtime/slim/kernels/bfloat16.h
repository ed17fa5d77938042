// Rounds floats to bfloat16, to the nearest number, and to the even one of two; and widens them.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_BFLOAT16_H_
#define AOTI_RUNTIME_SLIM_KERNELS_BFLOAT16_H_

#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef uint32_t VecU __attribute__((vector_size(4 * kLanes)));
typedef uint16_t VecU16Any __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));

// The bits. NaN stays NaN, and subnormal numbers stay what they are.
inline VecU16Any RoundedToBFloat16(VecF v) {
  const VecU bits = (VecU)v;
  const VecU rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const VecU is_nan = (VecU)(v != v);
  return __builtin_convertvector((is_nan & 0x7fc0) | (~is_nan & rounded), VecU16Any);
}

inline VecU LoadBits16(const void* p) {
#if defined(__AVX2__) && !defined(__AVX512F__)  // the compiler would use two half vectors
  return (VecU)_mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
#else
  return __builtin_convertvector(*static_cast<const VecU16Any*>(p), VecU);
#endif
}

inline void RoundToBFloat16(const float* from, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    *reinterpret_cast<VecU16Any*>(to + i) = RoundedToBFloat16(Load(from + i));
  }
  if (i == count) return;
  const VecU16Any rest = RoundedToBFloat16(LoadPart(from + i, static_cast<int>(count - i)));
  for (int lane = 0; i < count; ++i, ++lane) to[i] = rest[lane];
}

inline void WidenBFloat16(const uint16_t* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(to + i, (VecF)(LoadBits16(from + i) << 16));
  for (; i < count; ++i) to[i] = __builtin_bit_cast(float, uint32_t{from[i]} << 16);
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_BFLOAT16_H_
