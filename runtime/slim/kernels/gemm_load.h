// Loads vectors of float from matrices of float, bfloat16 and float16. Only for kernels/gemm*.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_LOAD_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_LOAD_H_

#include "runtime/slim/kernels/bfloat16.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef int8_t VecI8Any __attribute__((vector_size(kLanes), aligned(1), may_alias));

// The bits of 16-bit numbers, as separate types for overloading.
struct BFloat16Bits {
  uint16_t bits;
};
struct HalfBits {
  uint16_t bits;
};

#if defined(__x86_64__)
// The compiler would load the bytes one by one.
inline __m128 LoadFourFloats(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  const __m128i bytes = _mm_cvtsi32_si128(four);
  const __m128i pairs = _mm_unpacklo_epi8(bytes, bytes);
  return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(pairs, pairs), 24));
}
#endif

inline VecF LoadFloats(const float* p) { return Load(p); }
inline VecF LoadFloats(const int8_t* p) {
#if defined(__AVX512F__)  // the compiler would widen in two steps
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const auto ones = static_cast<__mmask16>(-1);
  return (VecF)_mm512_maskz_cvtepi32_ps(ones, _mm512_maskz_cvtepi8_epi32(ones, bytes));
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return (VecF)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
#elif defined(__x86_64__)
  return (VecF)LoadFourFloats(p);
#else
  return __builtin_convertvector(*reinterpret_cast<const VecI8Any*>(p), VecF);
#endif
}
inline VecF LoadFloats(const BFloat16Bits* p) { return (VecF)(LoadBits16(p) << 16); }
inline VecF LoadFloats(const HalfBits* p) {
#if defined(__AVX512F__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return (VecF)_mm512_maskz_cvtph_ps(static_cast<__mmask16>(-1), bits);
#elif defined(__F16C__)
  return (VecF)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  // As a float, exponent and mantissa must only be multiplied by the difference of the exponent
  // biases, 2^112; this is also true for subnormal numbers. Infinity and NaN keep the highest
  // exponent.
  const VecU bits = LoadBits16(p);
  const VecU magnitude = (bits & 0x7fff) << 13;
  const VecU special = (VecU)(magnitude >= (0x7c00u << 13)) & 0x7f800000u;
  const VecF scaled = (VecF)magnitude * 0x1p112f;
  return (VecF)((VecU)scaled | special | (bits & 0x8000) << 16);
#endif
}

inline float ToFloat(float x) { return x; }
inline float ToFloat(int8_t x) { return x; }
inline float ToFloat(BFloat16Bits x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
inline float ToFloat(HalfBits x) {
#if defined(__F16C__)
  return _cvtsh_ss(x.bits);
#else
  const HalfBits several[kLanes] = {x};
  return LoadFloats(several)[0];
#endif
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_LOAD_H_
