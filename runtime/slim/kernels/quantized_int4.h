// Products with 4-bit weights with AVX2. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_INT4_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_INT4_H_

#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/quantized.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef float Floats __attribute__((vector_size(32)));

struct ScaleAndZero {
  Floats scale, zero;
};

ScaleAndZero Split(__m256 low, __m256 high) {
  const __m256 scale = _mm256_shuffle_ps(low, high, 0x88),
               zero = _mm256_shuffle_ps(low, high, 0xdd);
  const auto in_order = [](__m256 v) {
    return (Floats)_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  };
  return {in_order(scale), in_order(zero)};
}

ScaleAndZero LoadScales(const float* p) {
  return Split(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
ScaleAndZero LoadScales(const BFloat16Bits* p) {
  const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {(Floats)_mm256_slli_epi32(both, 16),
          (Floats)_mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xffff0000)))};
}
ScaleAndZero LoadScales(const HalfBits* p) {
  return Split(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
               _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8))));
}

// How many bytes ahead memory is prefetched, which is enough to read it at full speed.
constexpr int64_t kInt4Ahead = 6144;
// The number of k at a time.
constexpr int kInt4Part = 32;

// Integer products: each byte has two weights, and one instruction multiplies 32 weights by 32
// bytes of activations.
template <int kPlanes, typename Scale>
void DotsOfInt4(const Int4Dots& dots) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i pairs = _mm256_setr_epi8(0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2,  //
                                         1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3);
  const uint8_t* weights = dots.weights;
  const Scale* scales = static_cast<const Scale*>(dots.scales);
  Floats total[4] = {};  // rows 0..7, 8..15, 16..23, 24..31 of the block
  int64_t k = 0;
  for (int64_t group = 0; k < dots.k; ++group) {
    Floats sum[4] = {};
    for (const int64_t end = k + dots.group; k < end; k += kInt4Part) {
      // Sums of 8 pairs of products are less than 2^15.
      __m256i sums16[kPlanes][4];
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p) {
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) sums16[p][c] = _mm256_setzero_si256();
      }
#pragma GCC unroll 8
      for (int i = 0; i < kInt4Part; i += 4, weights += 64) {
        const __m256i k01 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
        const __m256i k23 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32));
        _mm_prefetch(reinterpret_cast<const char*>(weights + kInt4Ahead), _MM_HINT_T0);
        const __m256i low = _mm256_unpacklo_epi8(k01, k23), high = _mm256_unpackhi_epi8(k01, k23);
        const __m256i w[4] = {_mm256_and_si256(low, nibble), _mm256_and_si256(high, nibble),
                              _mm256_and_si256(_mm256_srli_epi16(low, 4), nibble),
                              _mm256_and_si256(_mm256_srli_epi16(high, 4), nibble)};
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          int32_t four;
          __builtin_memcpy(&four, dots.planes[p] + k + i, 4);
          const __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32(four), pairs);
#pragma GCC unroll 4
          for (int c = 0; c < 4; ++c) {
            sums16[p][c] = _mm256_add_epi16(sums16[p][c], _mm256_maddubs_epi16(w[c], x));
          }
        }
      }
      float factor = dots.steps[group];
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p, factor *= 256) {
#pragma GCC unroll 4
        for (int c = 0; c < 4; ++c) {
          const __m256i sums =
              _mm256_add_epi32(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums16[p][c])),
                               _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sums16[p][c], 1)));
          sum[c] += factor * (Floats)_mm256_cvtepi32_ps(sums);
        }
      }
    }
    const float x = dots.sums[group];
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const ScaleAndZero s = LoadScales(scales + group * dots.scales_row + c * 16);
      total[c] += s.scale * (sum[c] - 8 * x) + s.zero * x;
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) _mm256_storeu_ps(dots.out + c * 8, (__m256)total[c]);
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_INT4_H_
