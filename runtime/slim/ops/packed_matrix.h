// Matrices that were packed when the model was built.

#ifndef AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_
#define AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// A matrix in a tensor: the sizes and strides of a part of its storage.
struct MatrixIn {
  const Tensor* tensor;
  std::int64_t offset;  // in elements, from the tensor's first one
  std::int64_t rows, columns;
  std::int64_t row, column;  // strides
};

// The packed copy of `b`, in the layout of kernels/gemm.h, if its tensor is a whole constant: a
// matrix, or a stack of matrices; otherwise null. Throws OpError if `b` has neither this copy nor
// its own numbers.
inline const void* PackedMatrix(const MatrixIn& b, GemmType type) {
  const Storage& storage = b.tensor->storage();
  const std::int64_t elements = b.rows * b.columns;
  const auto copy = [&]() -> const void* {
    const PackedWeight* packed = storage.packed;
    if (packed == nullptr || b.tensor->offset() != 0) return nullptr;
    const std::int64_t count = b.tensor->rank() == 3 ? b.tensor->size(0) : 1;
    if (elements == 0 || (count > 1 && b.tensor->stride(0) != elements)) return nullptr;
    const bool transposed = b.row == 1 && b.column == b.rows;
    const bool rows = b.column == 1 && b.row == b.columns;
    const std::string_view wanted = type == GemmType::kFloat      ? "gemm_f32"
                                    : type == GemmType::kBFloat16 ? "gemm_bf16"
                                                                  : "gemm_f16";
    const std::string_view given = packed->kind;
    if (!given.starts_with(wanted)) return nullptr;
    const std::string_view suffix = given.substr(wanted.size());
    if (!(suffix.empty() && transposed) && !(suffix == "_rows" && rows)) return nullptr;
    const std::size_t size = type == GemmType::kFloat ? 4 : 2;
    const std::size_t bytes = static_cast<std::size_t>(RoundUp(b.columns, kPanel) * b.rows) * size;
    if (packed->bytes != bytes * static_cast<std::size_t>(count)) return nullptr;
    return static_cast<const char*>(packed->data) +
           static_cast<std::size_t>(b.offset / elements) * bytes;
  };
  const void* found = copy();
  Require(found != nullptr || storage.data() != nullptr || elements == 0,
          "a weight was packed for another operator");
  return found;
}

// That of a weight, float32[n, k], for products with its transpose.
inline const float* PackedWeightOf(const Tensor& weight) {
  if (weight.dtype() != ScalarType::kFloat32) return nullptr;
  const MatrixIn transposed = {&weight,         0, weight.size(1), weight.size(0), weight.stride(1),
                               weight.stride(0)};
  return static_cast<const float*>(PackedMatrix(transposed, GemmType::kFloat));
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_
