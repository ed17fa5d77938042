// Helpers for operators that take indices.

#ifndef AOTI_RUNTIME_SLIM_OPS_INDEXING_H_
#define AOTI_RUNTIME_SLIM_OPS_INDEXING_H_

#include <cstdint>

#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// For scatter and related operators, whose indices may not be negative.
[[noreturn, gnu::noinline]] inline void ThrowPlace(std::int64_t place, std::int64_t dim,
                                                   std::int64_t size) {
  throw OpError(StrCat("index ", place, " is out of range 0..", size - 1, " for dim ", dim,
                       " of size ", size));
}

// For indices that may be negative.
[[noreturn, gnu::noinline]] inline void ThrowIndex(std::int64_t index, std::int64_t dim,
                                                   std::int64_t size) {
  throw OpError(StrCat("index ", index, " is out of range ", -size, "..", size - 1, " for dim ",
                       dim, " of size ", size));
}

// `index` counted from the beginning; throws if it is out of range.
inline std::int64_t WrapIndex(std::int64_t index, std::int64_t dim, std::int64_t size) {
  const std::int64_t place = index < 0 ? index + size : index;
  if (static_cast<std::uint64_t>(place) >= static_cast<std::uint64_t>(size)) [[unlikely]] {
    ThrowIndex(index, dim, size);
  }
  return place;
}

// A scalar as a tensor with one dim of size 1; other tensors as they are.
inline TensorPtr AtLeast1d(const Tensor& tensor) {
  if (tensor.rank() > 0) return TensorPtr(new Tensor(tensor));
  const std::int64_t one = 1;
  return View(tensor, {&one, 1}, {&one, 1}, tensor.offset());
}

// A scalar with this value.
inline TensorPtr FromDouble(double value, ScalarType dtype) {
  TensorPtr result = Empty(dtype, {});
  const TensorPtr wide = Empty(ScalarType::kFloat64, {});
  *wide->data<double>() = value;
  Copy(*result, *wide);
  return result;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_INDEXING_H_
