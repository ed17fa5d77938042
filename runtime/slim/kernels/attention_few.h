// Attention of a few rows of queries, which takes as long as keys and values take to be read. Only
// for kernels/attention.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_FEW_H_
#define AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_FEW_H_

#include <stdint.h>

#include "runtime/slim/kernels/attention.h"
#include "runtime/slim/kernels/attention_softmax.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// The keys of a block are read as so many streams, all heads of a key together: in a cache, the
// heads of a key lie side by side, and so each stream is contiguous memory, which the hardware
// prefetcher follows. Head by head, reading takes more than twice as long.
constexpr int kFewStreams = 4;

// The hardware prefetcher ends at a page's end, and streams are a few pages long. So while keys are
// read, the block's values are prefetched, and while values are read, the next block's keys: to the
// second level of the cache, since they are more than the first one has.
inline void PrefetchForLater(const float* p) { __builtin_prefetch(p, 0, 2); }

// The softmax of a row, whose products are in `scores`. Writes the factor that adapts the row's
// earlier sums to the new maximum.
void SoftenRow(const AttentionBlock& block, int64_t row, float* scores, float* factor) {
  const float scale = block.scale * kLog2E;
  const float* mask = block.mask == nullptr ? nullptr : block.mask[row];
  const float before = block.maximum[row];
  const float most = ReduceMax(Largest(scores, block.visible[row], mask, scale));
  const float after = before > most ? before : most;
  block.maximum[row] = after;
  // Before the row's first visible key: 2^(-inf - 0) is 0, but 2^(-inf - -inf) would be NaN.
  const float maximum = after == -INFINITY ? 0 : after;
  *factor = Exp2(Splat(before - maximum))[0];
  const VecF sum = Weigh(scores, block.visible[row], mask == nullptr ? scale : 1, maximum);
  block.sum[row] = block.sum[row] * *factor + ReduceAdd(sum);
}

// scores[q, key] for the keys t, t + step, ... The block's last key is read again in place of keys
// beyond it.
template <int kQueries>
void ScoreStreams(const AttentionBlock& block, int64_t t, int64_t step, float* scores) {
  const float* queries = static_cast<const float*>(block.query);
  const float* from[kFewStreams];
  const float* value[kFewStreams];
#pragma GCC unroll 4
  for (int s = 0; s < kFewStreams; ++s) {
    const int64_t key = t + s * step < block.keys ? t + s * step : block.keys - 1;
    from[s] = static_cast<const float*>(block.key) + key * block.key_stride;
    value[s] = static_cast<const float*>(block.value) + key * block.value_stride;
  }
  VecF sums[kQueries][kFewStreams];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int s = 0; s < kFewStreams; ++s) sums[q][s] = VecF{};
  }
  for (int64_t d = 0; d < block.depth; d += kLanes) {
    VecF x[kFewStreams];
#pragma GCC unroll 4
    for (int s = 0; s < kFewStreams; ++s) x[s] = Load(from[s] + d);
#pragma GCC unroll 4
    for (int s = 0; s < kFewStreams; ++s) PrefetchForLater(value[s] + d);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const VecF query = Load(queries + q * block.depth + d);
#pragma GCC unroll 4
      for (int s = 0; s < kFewStreams; ++s) sums[q][s] = Fma(query, x[s], sums[q][s]);
    }
  }
  static_assert(kFewStreams == 4);
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
    const Quad totals = TotalsOfFour(sums[q]);
#pragma GCC unroll 4
    for (int s = 0; s < kFewStreams; ++s) {
      scores[q * kAttentionKeys + t + s * step] = totals[s];
    }
  }
}

// result[q, :] += weights[q, key] * values[key, :] for the keys t, t + step, ..., for kVectors
// vectors.
template <int kQueries, int kVectors, int kStreams>
void MixVectors(const AttentionBlock& block, int64_t t, int64_t step, const float* weights,
                int64_t d) {
  const float* values = static_cast<const float*>(block.value) + t * block.value_stride + d;
  const float* next =
      static_cast<const float*>(block.key) + (block.keys + t) * block.key_stride + d;
  float* result = block.result + d;
  VecF sums[kQueries][kVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int w = 0; w < kVectors; ++w) {
      sums[q][w] = Load(result + q * block.value_depth + w * kLanes);
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < kStreams; ++s) {
    VecF x[kVectors];
#pragma GCC unroll 4
    for (int w = 0; w < kVectors; ++w) {
      x[w] = Load(values + s * step * block.value_stride + w * kLanes);
      if (block.more) PrefetchForLater(next + s * step * block.key_stride + w * kLanes);
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const VecF weight = Splat(weights[q * kAttentionKeys + t + s * step]);
#pragma GCC unroll 4
      for (int w = 0; w < kVectors; ++w) sums[q][w] = Fma(weight, x[w], sums[q][w]);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int w = 0; w < kVectors; ++w) {
      Store(result + q * block.value_depth + w * kLanes, sums[q][w]);
    }
  }
}

template <int kQueries, int kStreams>
void MixStreams(const AttentionBlock& block, int64_t t, int64_t step, const float* weights) {
  int64_t d = 0;
  for (; d + 4 * kLanes <= block.value_depth; d += 4 * kLanes) {
    MixVectors<kQueries, 4, kStreams>(block, t, step, weights, d);
  }
  for (; d < block.value_depth; d += kLanes) {
    MixVectors<kQueries, 1, kStreams>(block, t, step, weights, d);
  }
}

template <int kQueries>
void AttendFewRows(const AttentionBlock* heads, int64_t count) {
  constexpr int64_t kScores = kQueries * kAttentionKeys;
  float* scratch = heads->scratch;  // of all heads
  int64_t most = 0;
  for (int64_t h = 0; h < count; ++h) {
    if (heads[h].keys > most) most = heads[h].keys;
  }
  const int64_t step = (most + kFewStreams - 1) / kFewStreams;
  for (int64_t t = 0; t < step; ++t) {
    for (int64_t h = 0; h < count; ++h) {
      if (heads[h].keys > 0) ScoreStreams<kQueries>(heads[h], t, step, scratch + h * kScores);
    }
  }
  for (int64_t h = 0; h < count; ++h) {
    const AttentionBlock& block = heads[h];
    if (block.keys == 0) continue;
    for (int q = 0; q < kQueries; ++q) {
      float* scores = scratch + h * kScores + q * kAttentionKeys;
      float factor;
      SoftenRow(block, q, scores, &factor);
      for (int64_t key = block.visible[q]; key < block.keys; ++key) scores[key] = 0;
      float* result = block.result + q * block.value_depth;
      for (int64_t d = 0; d < block.value_depth; d += kLanes) {
        Store(result + d, Load(result + d) * factor);
      }
    }
  }
  for (int64_t t = 0; t < step; ++t) {
    for (int64_t h = 0; h < count; ++h) {
      const AttentionBlock& block = heads[h];
      const float* weights = scratch + h * kScores;
      if (t + (kFewStreams - 1) * step < block.keys) {
        MixStreams<kQueries, kFewStreams>(block, t, step, weights);
      } else {
        for (int64_t key = t; key < block.keys; key += step) {
          MixStreams<kQueries, 1>(block, key, step, weights);
        }
      }
    }
  }
}

void AttendFew(const AttentionBlock* heads, int64_t count) {
  static_assert(kAttentionFewRows == 4);
  switch (heads->rows) {
    case 1:
      return AttendFewRows<1>(heads, count);
    case 2:
      return AttendFewRows<2>(heads, count);
    case 3:
      return AttendFewRows<3>(heads, count);
    default:
      return AttendFewRows<4>(heads, count);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_FEW_H_
