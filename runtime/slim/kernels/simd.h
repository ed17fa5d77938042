// Vectors for kernels that are compiled once per CpuLevel.
//
// Files in kernels/ are compiled with -DAOTI_ISA=<namespace> and the level's -march. They must not
// use inline functions or templates of the standard library: the linker keeps one copy of each for
// the whole binary, and it could be one that this CPU can't run. Everything here has internal
// linkage for the same reason.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_SIMD_H_
#define AOTI_RUNTIME_SLIM_KERNELS_SIMD_H_

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float VecF __attribute__((vector_size(4 * kLanes)));
typedef int32_t VecI __attribute__((vector_size(4 * kLanes)));
typedef float VecFAny __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

inline VecF Load(const float* p) { return *reinterpret_cast<const VecFAny*>(p); }
inline void Store(float* p, VecF v) { *reinterpret_cast<VecFAny*>(p) = v; }
inline VecF Splat(float x) { return x - VecF{}; }  // unlike x + 0, this keeps -0
// Loads or stores the first `count` lanes; the other lanes are 0, or are not written.
#if defined(__AVX512F__)
constexpr bool kMasksParts = true;  // as fast as whole vectors
inline __mmask16 FirstLanes(int count) { return static_cast<__mmask16>((1u << count) - 1); }
inline VecF LoadPart(const float* p, int count) {
  return (VecF)_mm512_maskz_loadu_ps(FirstLanes(count), p);
}
inline void StorePart(float* p, VecF v, int count) {
  _mm512_mask_storeu_ps(p, FirstLanes(count), (__m512)v);
}
#else
constexpr bool kMasksParts = false;
inline VecF LoadPart(const float* p, int count) {
  VecF v = {};
  for (int i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
inline void StorePart(float* p, VecF v, int count) {
  for (int i = 0; i < count; ++i) p[i] = v[i];
}
#endif
// a * b + c, fused if the CPU can: kernels are compiled with -ffp-contract=fast.
inline VecF Fma(VecF a, VecF b, VecF c) { return a * b + c; }
inline VecF Max(VecF a, VecF b) { return a > b ? a : b; }
inline VecF Min(VecF a, VecF b) { return a < b ? a : b; }
// a / b for ordinary numbers, within 2 ulp.
inline VecF Ratio(VecF a, VecF b) {
#if defined(__AVX512F__)
  // A division of 16 floats takes as long as 20 multiplications.
  const VecF guess = (VecF)_mm512_maskz_rcp14_ps(static_cast<__mmask16>(-1), (__m512)b);
  return a * (guess * (2.0f - b * guess));
#else
  return a / b;
#endif
}
// Rotates v so that lane kFirst comes first.
template <int kFirst>
inline VecF Rotated(VecF v) {
#define AOTI_LANE(i) ((i) + kFirst) % kLanes
#define AOTI_LANES(i) AOTI_LANE(i), AOTI_LANE(i + 1), AOTI_LANE(i + 2), AOTI_LANE(i + 3)
#if defined(__AVX512F__)
  return __builtin_shufflevector(v, v, AOTI_LANES(0), AOTI_LANES(4), AOTI_LANES(8), AOTI_LANES(12));
#elif defined(__AVX2__)
  return __builtin_shufflevector(v, v, AOTI_LANES(0), AOTI_LANES(4));
#else
  return __builtin_shufflevector(v, v, AOTI_LANES(0));
#endif
#undef AOTI_LANES
#undef AOTI_LANE
}
// Lane i of the result is lane `lanes[i]` of `v`.
inline VecF LanesAt(VecF v, VecI lanes) {
#if defined(__clang__)  // has no shuffle with lanes that are only known at run time
  VecF result;
  for (int i = 0; i < kLanes; ++i) result[i] = v[lanes[i] & (kLanes - 1)];
  return result;
#else
  return __builtin_shuffle(v, lanes);
#endif
}

// (a0, b0, a1, b1, ..) from the lower and from the upper halves.
inline VecF InterleaveLow(VecF a, VecF b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
inline VecF InterleaveHigh(VecF a, VecF b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

typedef float Quad __attribute__((vector_size(16)));

// Lane i of the result is the sum of the lanes i, i + 4, ...
inline Quad AddQuads(VecF v) {
#if defined(__AVX512F__)
  const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const auto half = v;
#endif
#if defined(__AVX2__)
  return (Quad)(__builtin_shufflevector(half, half, 0, 1, 2, 3) +
                __builtin_shufflevector(half, half, 4, 5, 6, 7));
#else
  return (Quad)half;
#endif
}
// The sums over the lanes of four vectors.
inline Quad TotalsOfFour(const VecF* v) {
  const VecF even = InterleaveLow(v[0], v[2]) + InterleaveHigh(v[0], v[2]);
  const VecF odd = InterleaveLow(v[1], v[3]) + InterleaveHigh(v[1], v[3]);
  return AddQuads(InterleaveLow(even, odd) + InterleaveHigh(even, odd));
}
inline float ReduceAdd(VecF v) {
  if constexpr (kLanes >= 16) v += Rotated<8>(v);
  if constexpr (kLanes >= 8) v += Rotated<4>(v);
  v += Rotated<2>(v);
  v += Rotated<1>(v);
  return v[0];
}
inline float ReduceMax(VecF v) {
  if constexpr (kLanes >= 16) v = Max(v, Rotated<8>(v));
  if constexpr (kLanes >= 8) v = Max(v, Rotated<4>(v));
  v = Max(v, Rotated<2>(v));
  v = Max(v, Rotated<1>(v));
  return v[0];
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_SIMD_H_
