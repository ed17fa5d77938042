#include "runtime/slim/kernels/embedding.h"

#include <stdint.h>

#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int kVectors = 4;    // vectors of columns that are summed in registers at a time
constexpr int64_t kAhead = 8;  // rows to prefetch, since they are scattered over the table

// Sums kCount vectors of columns from `column` on.
template <int kCount, typename T>
inline void SumColumns(const void* const* rows, const float* weights, int64_t count, int64_t column,
                       float* sums) {
  VecF total[kCount] = {};
  for (int64_t i = 0; i < count; ++i) {
    const T* row = static_cast<const T*>(rows[i]) + column;
    if (i + kAhead < count) {
      const T* ahead = static_cast<const T*>(rows[i + kAhead]) + column;
      for (int v = 0; v < kCount; ++v) __builtin_prefetch(ahead + v * kLanes);
    }
    const float weight = weights == nullptr ? 1.0f : weights[i];
    for (int v = 0; v < kCount; ++v) {
      total[v] = Fma(LoadFloats(row + v * kLanes), Splat(weight), total[v]);
    }
  }
  for (int v = 0; v < kCount; ++v) Store(sums + column + v * kLanes, total[v]);
}

template <typename T>
void Sum(const void* const* rows, const float* weights, int64_t count, float* sums, int64_t size) {
  int64_t column = 0;
  for (; column + kVectors * kLanes <= size; column += kVectors * kLanes) {
    SumColumns<kVectors, T>(rows, weights, count, column, sums);
  }
  for (; column + kLanes <= size; column += kLanes) {
    SumColumns<1, T>(rows, weights, count, column, sums);
  }
  for (; column < size; ++column) {
    float total = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float weight = weights == nullptr ? 1.0f : weights[i];
      total += ToFloat(static_cast<const T*>(rows[i])[column]) * weight;
    }
    sums[column] = total;
  }
}

void SumRows(const void* const* rows, const float* weights, int64_t count, RowType type,
             float* sums, int64_t size) {
  switch (type) {
    case RowType::kFloat:
      return Sum<float>(rows, weights, count, sums, size);
    case RowType::kHalf:
      return Sum<HalfBits>(rows, weights, count, sums, size);
    case RowType::kBFloat16:
      return Sum<BFloat16Bits>(rows, weights, count, sums, size);
  }
}

}  // namespace

extern const EmbeddingKernels kEmbedding = {SumRows};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
