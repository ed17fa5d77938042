#include "runtime/slim/attention/mask.h"

#include <algorithm>

#include "runtime/core/parallel.h"

namespace aoti::slim {
namespace {

// The mask itself if its rows are contiguous float32, otherwise such a copy.
TensorPtr Readable(const Tensor& mask, std::int64_t keys) {
  const std::int64_t last = mask.rank() - 1;
  const bool dense = mask.size(last) == keys && (keys == 1 || mask.stride(last) == 1);
  if (dense && mask.dtype() == ScalarType::kFloat32) return TensorPtr(new Tensor(mask));
  std::int64_t sizes[4];
  std::copy(mask.sizes().begin(), mask.sizes().end(), sizes);
  sizes[last] = keys;
  TensorPtr copy = Empty(ScalarType::kFloat32, Ints(sizes, mask.sizes().size()));
  Copy(*copy, mask);
  return copy;
}

std::int64_t Rows(const Tensor& mask, std::int64_t keys) {
  return keys == 0 ? 0 : mask.numel() / mask.size(mask.rank() - 1);
}

}  // namespace

AttentionMask::AttentionMask(const AttentionKernels& kernels, const AttentionProblem& problem)
    : copy_(Readable(*problem.mask, problem.keys)),
      data_(copy_->data<float>()),
      ranges_(static_cast<std::size_t>(2 * Rows(*copy_, problem.keys))) {
  std::int64_t rows = 1;
  std::int64_t sizes[3];
  for (int dim = 2; dim >= 0; --dim) {
    const std::int64_t own = dim - (4 - copy_->rank());
    sizes[dim] = own < 0 ? 1 : copy_->size(own);
    strides_[dim] = sizes[dim] == 1 ? 0 : copy_->stride(own);
    steps_[dim] = sizes[dim] == 1 ? 0 : rows;
    rows *= sizes[dim];
  }
  const std::int64_t grain = 65536 / problem.keys + 1;
  internal::ParallelFor(0, rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const float* data = data_ + row % sizes[2] * strides_[2] +
                          row / sizes[2] % sizes[1] * strides_[1] +
                          row / sizes[2] / sizes[1] * strides_[0];
      kernels.visible_range(data, problem.keys, &ranges_[2 * row], &ranges_[2 * row + 1]);
    }
  });
}

}  // namespace aoti::slim
