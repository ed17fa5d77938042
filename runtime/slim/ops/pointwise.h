// Functions of one or two elements, for any dtype and strides.

#ifndef AOTI_RUNTIME_SLIM_OPS_POINTWISE_H_
#define AOTI_RUNTIME_SLIM_OPS_POINTWISE_H_

#include <complex>
#include <cstdint>

#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// The dtype in which PyTorch computes an operator on both dtypes.
ScalarType Promote(ScalarType a, ScalarType b);
// The same for tensors: a scalar counts only if its category is higher (bool, integer,
// floating-point, complex).
ScalarType ResultType(const Tensor& a, const Tensor& b);
// For a tensor and a number that was passed as a double.
ScalarType ResultTypeWithDouble(const Tensor& a);

// `tensor` if it has this dtype, otherwise a converted copy with the same order of dims.
TensorPtr As(const Tensor& tensor, ScalarType dtype);

// out[i] = function(a[i]); out and a may have different dtypes.
template <typename Out, typename In, typename Function>
void Map(const Tensor& out, const Tensor& a, const Function& function) {
  ForEachRun(out.sizes(), {out.strides(), a.strides()}, Order::kAny, kGrain,
             [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
               Out* to = out.data<Out>() + offsets[0];
               const In* from = a.data<In>() + offsets[1];
               const std::int64_t to_step = steps[0], step = steps[1];
               for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = function(from[i * step]);
             });
}

// The result of function(a[i], b[i]), broadcast; a and b must have out's dtype.
template <typename T, typename Function>
void Map2(const Tensor& out, const Tensor& a, const Tensor& b, const Function& function) {
  const Shape a_strides = BroadcastStrides(a, out.sizes());
  const Shape b_strides = BroadcastStrides(b, out.sizes());
  ForEachRun(out.sizes(), {out.strides(), a_strides, b_strides}, Order::kAny, kGrain,
             [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
               T* to = out.data<T>() + offsets[0];
               const T* x = a.data<T>() + offsets[1];
               const T* y = b.data<T>() + offsets[2];
               const std::int64_t to_step = steps[0], x_step = steps[1], y_step = steps[2];
               for (std::int64_t i = 0; i < count; ++i) {
                 to[i * to_step] = function(x[i * x_step], y[i * y_step]);
               }
             });
}

// An empty result of an elementwise operator on a and b, with PyTorch's strides.
TensorPtr EmptyResult(ScalarType dtype, const Tensor& a, const Tensor& b);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_POINTWISE_H_
