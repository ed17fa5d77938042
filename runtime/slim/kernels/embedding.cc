#include "runtime/slim/kernels/embedding.h"

#include <stdint.h>

#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

template <typename T>
void Add(const T* row, float weight, float* sums, int64_t size) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(sums + i, Fma(LoadFloats(row + i), Splat(weight), Load(sums + i)));
  }
  for (; i < size; ++i) sums[i] += ToFloat(row[i]) * weight;
}

void AddRow(const void* row, RowType type, float weight, float* sums, int64_t size) {
  switch (type) {
    case RowType::kFloat:
      return Add(static_cast<const float*>(row), weight, sums, size);
    case RowType::kHalf:
      return Add(static_cast<const HalfBits*>(row), weight, sums, size);
    case RowType::kBFloat16:
      return Add(static_cast<const BFloat16Bits*>(row), weight, sums, size);
  }
}

}  // namespace

extern const EmbeddingKernels kEmbedding = {AddRow};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
