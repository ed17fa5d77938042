// Attention between queries, keys and values of bfloat16, with AVX512_BF16. Scores, their softmax
// and sums are float32; weights are rounded to bfloat16 for the product with the values. Only for
// kernels/attention.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_PAIRS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_PAIRS_H_

#include "runtime/slim/kernels/attention.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/pairs.h"

#if defined(__AVX512F__)

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// to[(v * pairs + p) * kLanes + j] = the pair of from[2 * p, v * kLanes + j] and the number below
// it, for the vectors v of a row; pairs = keys / 2, rounded up, and below the last row are zeros.
void PairValues(const uint16_t* from, int64_t stride, int64_t keys, int64_t depth, uint32_t* to) {
  const int64_t pairs = (keys + 1) / 2;
  for (int64_t p = 0; p < pairs; ++p, from += 2 * stride) {
    for (int64_t d = 0; d < depth; d += kLanes) {
      VecU both = LoadBits16(from + d);
      if (2 * p + 1 < keys) both |= LoadBits16(from + stride + d) << 16;
      _mm512_storeu_si512(to + d * pairs + p * kLanes, (__m512i)both);
    }
  }
}

// scores[q, key] for the first kVectors vectors of keys of a panel [depth / 2, panel] of pairs.
template <int kQueries, int kVectors>
AOTI_SLIM_BFLOAT16 void ScorePairs(const uint16_t* queries, int64_t depth, const uint32_t* keys,
                                   int64_t panel, float* scores) {
  __m512 sums[kQueries][kVectors];
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) sums[q][w] = _mm512_setzero_ps();
  }
  for (int64_t d = 0; d < depth; d += 2, keys += panel) {
    __m512i x[kVectors];
    for (int w = 0; w < kVectors; ++w) x[w] = _mm512_loadu_si512(keys + w * kLanes);
    for (int q = 0; q < kQueries; ++q) {
      const __m512bh query = (__m512bh)SplatPair(queries + q * depth + d);
      for (int w = 0; w < kVectors; ++w) {
        sums[q][w] = _mm512_dpbf16_ps(sums[q][w], query, (__m512bh)x[w]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) {
      _mm512_storeu_ps(scores + q * kAttentionKeys + w * kLanes, sums[q][w]);
    }
  }
}

// Rounds `keys` weights in place: the numbers of the result lie side by side.
AOTI_SLIM_BFLOAT16 void NarrowWeights(float* weights, int64_t keys) {
  uint16_t* to = reinterpret_cast<uint16_t*>(weights);
  for (int64_t key = 0; key < keys; key += kLanes) {
    const __m512 x = _mm512_loadu_ps(weights + key);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + key), (__m256i)_mm512_cvtneps_pbh(x));
  }
}

// result[q, :] = result[q, :] * factors[q] + weights[q, :] * values, for kVectors vectors, whose
// pairs are `vector` apart.
template <int kQueries, int kVectors>
AOTI_SLIM_BFLOAT16 void MixPairs(const float* weights, const float* factors, const uint32_t* values,
                                 int64_t vector, int64_t pairs, float* result,
                                 int64_t result_stride) {
  __m512 sums[kQueries][kVectors];
  for (int q = 0; q < kQueries; ++q) {
    const __m512 factor = _mm512_set1_ps(factors[q]);
    for (int w = 0; w < kVectors; ++w) {
      sums[q][w] = _mm512_mul_ps(_mm512_loadu_ps(result + q * result_stride + w * kLanes), factor);
    }
  }
  for (int64_t p = 0; p < pairs; ++p, values += kLanes) {
    __m512i x[kVectors];
    for (int w = 0; w < kVectors; ++w) x[w] = _mm512_loadu_si512(values + w * vector);
    for (int q = 0; q < kQueries; ++q) {
      const auto* row = reinterpret_cast<const uint16_t*>(weights + q * kAttentionKeys);
      const __m512bh weight = (__m512bh)SplatPair(row + 2 * p);
      for (int w = 0; w < kVectors; ++w) {
        sums[q][w] = _mm512_dpbf16_ps(sums[q][w], weight, (__m512bh)x[w]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) {
      _mm512_storeu_ps(result + q * result_stride + w * kLanes, sums[q][w]);
    }
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // defined(__AVX512F__)

#endif  // AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_PAIRS_H_
