// Normally distributed numbers whose means and standard deviations are tensors: the same numbers as
// PyTorch's for the same seed.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/pointwise.h"
#include "runtime/slim/ops/random_fill.h"

namespace aoti::slim {
namespace {

// Numbers with mean 0 and the standard deviation `std`.
TensorPtr Numbers(ScalarType dtype, Ints sizes, double std) {
  TensorPtr result = Empty(dtype, sizes);
  FillNormal(*result, 0, std, Generator::Default());
  return result;
}

void RequireDeviations(const Tensor& std) {
  Require(IsFloating(std.dtype()), "normal: std is ", NameOf(std.dtype()),
          ", must be a floating-point dtype");
  DispatchFloating(std.dtype(), [&]<typename T>() {
    ForEachOffset(std.sizes(), {std.strides()}, [&](const std::int64_t* at) {
      const auto value = static_cast<Accumulator<T>>(std.data<T>()[at[0]]);
      Require(!(value < 0), "normal: an element of std is ", value, ", must not be negative");
    });
  });
}

// numbers += mean
void Add(const Tensor& numbers, const Tensor& mean) {
  DispatchAll(numbers.dtype(), [&]<typename T>() {
    using Wide = Accumulator<T>;
    Map2<T>(numbers, numbers, *As(mean, numbers.dtype()),
            [](T x, T y) { return static_cast<T>(Wide(x) + Wide(y)); });
  });
}

// mean + std * standard normal numbers, rounded between the steps as in PyTorch.
TensorPtr Normal(ScalarType dtype, const Tensor& mean, const Tensor& std) {
  RequireDeviations(std);
  const ScalarType wide = Promote(dtype, std.dtype());
  const TensorPtr products =
      As(*Numbers(dtype, BroadcastSizes(mean.sizes(), std.sizes()), 1), wide);
  DispatchFloating(wide, [&]<typename T>() {
    using Wide = Accumulator<T>;
    Map2<T>(*products, *products, *As(std, wide),
            [](T x, T y) { return static_cast<T>(Wide(x) * Wide(y)); });
  });
  TensorPtr result = As(*products, dtype);
  Add(*result, mean);
  return result;
}

// mean, std, generator (which is always the default one)
void NormalTensorFloat(StableIValue* stack) {
  const TensorPtr mean = TakeTensor(stack[0]);
  TensorPtr result = Numbers(mean->dtype(), mean->sizes(), TakeFloat(stack[1]));
  Add(*result, *mean);
  stack[0] = Give(std::move(result));
}

void NormalFloatTensor(StableIValue* stack) {
  const TensorPtr std = TakeTensor(stack[1]), mean = Empty(ScalarType::kFloat64, {});
  *mean->data<double>() = TakeFloat(stack[0]);
  stack[0] = Give(Normal(std->dtype(), *mean, *std));
}

void NormalTensorTensor(StableIValue* stack) {
  const TensorPtr mean = TakeTensor(stack[0]), std = TakeTensor(stack[1]);
  stack[0] = Give(Normal(mean->dtype(), *mean, *std));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_normal_Tensor_float, "aten::normal", "Tensor_float",
                        aoti::slim::NormalTensorFloat)
AOTI_SLIM_DISPATCHER_OP(aten_normal_float_Tensor, "aten::normal", "float_Tensor",
                        aoti::slim::NormalFloatTensor)
AOTI_SLIM_DISPATCHER_OP(aten_normal_Tensor_Tensor, "aten::normal", "Tensor_Tensor",
                        aoti::slim::NormalTensorTensor)
