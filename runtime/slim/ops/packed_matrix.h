// Weights of matrix products that were packed when the model was built.

#ifndef AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_
#define AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// The copy of a weight, float32[n, k], in the layout of kernels/gemm.h; null if it has none, or is
// a part of a tensor. Throws OpError if it has neither this copy nor its own numbers.
inline const float* PackedMatrix(const Tensor& weight) {
  const Storage& storage = weight.storage();
  const std::int64_t n = weight.size(0), k = weight.size(1);
  if (const PackedWeight* packed = storage.packed) {
    const auto bytes = static_cast<std::size_t>(RoundUp(n, kPanel) * k) * sizeof(float);
    if (std::string_view(packed->kind) == "gemm_f32" && packed->bytes == bytes &&
        weight.dtype() == ScalarType::kFloat32 && weight.offset() == 0 && weight.is_contiguous()) {
      return static_cast<const float*>(packed->data);
    }
  }
  Require(storage.data() != nullptr || n * k == 0, "a weight was packed for another operator");
  return nullptr;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_PACKED_MATRIX_H_
