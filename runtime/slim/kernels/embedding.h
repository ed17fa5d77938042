// Vector kernels of embedding_bag, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_
#define AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_

#include <stdint.h>

namespace aoti::slim {

enum class RowType { kFloat, kHalf, kBFloat16 };

struct EmbeddingKernels {
  // sums = the sum of the rows, each times its weight. weights: null for ones.
  void (*sum_rows)(const void* const* rows, const float* weights, int64_t count, RowType type,
                   float* sums, int64_t size);
};

#define AOTI_EMBEDDING_KERNELS(isa)         \
  namespace isa {                           \
  extern const EmbeddingKernels kEmbedding; \
  }
#if defined(__x86_64__)
AOTI_EMBEDDING_KERNELS(baseline)
AOTI_EMBEDDING_KERNELS(x86_v3)
AOTI_EMBEDDING_KERNELS(x86_v4)
#else
AOTI_EMBEDDING_KERNELS(neon)
#endif
#undef AOTI_EMBEDDING_KERNELS

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_EMBEDDING_H_
