// Products of int8 with the scales, bias and activation of a linear layer.

#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/gemm/gemm_int8.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

using std::int64_t;

constexpr const char* kInt8Product = "int8_product";

void RequireMatrix(const Tensor& t, const char* what) {
  Require(t.dtype() == ScalarType::kInt8 && t.rank() == 2, kInt8Product, ": ", what,
          " must be an int8 matrix");
}

// `count` contiguous float32 numbers.
TensorPtr Numbers(const Tensor& t, const char* what, int64_t count) {
  Require(t.dtype() == ScalarType::kFloat32 && t.numel() == count, kInt8Product, ": ", what,
          " must be ", count, " float32 numbers");
  return Contiguous(t);
}

TensorPtr FinishedProduct(const Tensor& a, const Tensor& weight, const Tensor& steps,
                          const Tensor& scales, const Tensor* bias, std::int32_t activation) {
  RequireMatrix(a, "the left matrix");
  RequireMatrix(weight, "the weight");
  const int64_t m = a.size(0), k = a.size(1), n = weight.size(0);
  Require(weight.size(1) == k, kInt8Product, ": sizes [", m, ", ", k, "] and [", n, ", ",
          weight.size(1), "] do not match");
  Require(activation >= 0 && activation <= static_cast<int>(GemmActivation::kGelu), kInt8Product,
          ": no activation ", activation);
  const TensorPtr of_rows = Numbers(steps, "the steps", m);
  const TensorPtr of_columns = Numbers(scales, "the scales", n);
  const TensorPtr added = bias == nullptr ? nullptr : Numbers(*bias, "the bias", n);
  const TensorPtr left = Contiguous(a), right = Contiguous(weight);
  TensorPtr result = Empty(ScalarType::kFloat32, {m, n});
  const Int8Finish finish = {.steps = of_rows->data<float>(),
                             .scales = of_columns->data<float>(),
                             .bias = added == nullptr ? nullptr : added->data<float>(),
                             .activation = static_cast<GemmActivation>(activation)};
  Gemm(GemmInt8{.m = m,
                .n = n,
                .k = k,
                .a = left->data<std::int8_t>(),
                .a_row = k,
                .b = right->data<std::int8_t>(),
                .c = static_cast<std::int32_t*>(result->data()),
                .c_row = n,
                .finish = &finish});
  return result;
}

}  // namespace
}  // namespace aoti::slim

// Generated code declares it: toolchain/driver/aoti_driver/inductor/int8_product_helpers.py.
// activation(sum_k a[i, k] * weight[j, k] * steps[i] * scales[j] + bias[j]) as float32.
extern "C" AOTITorchError aoti_slim_int8_product(AtenTensorHandle a, AtenTensorHandle weight,
                                                 AtenTensorHandle steps, AtenTensorHandle scales,
                                                 AtenTensorHandle bias, std::int32_t activation,
                                                 AtenTensorHandle* ret0) {
  return aoti::slim::Guarded([&] {
    *ret0 = aoti::slim::FinishedProduct(*a, *weight, *steps, *scales, bias, activation).release();
  });
}
