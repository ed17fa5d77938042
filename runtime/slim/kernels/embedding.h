// Vector kernels of embedding_bag, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_
#define AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

enum class RowType { kFloat, kHalf, kBFloat16 };

struct EmbeddingKernels {
  // sums = the sum of the rows, each multiplied by its weight. weights: null if all are 1.
  void (*sum_rows)(const void* const* rows, const float* weights, int64_t count, RowType type,
                   float* sums, int64_t size);
};

AOTI_SLIM_DECLARE_KERNELS(EmbeddingKernels, kEmbedding)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_
