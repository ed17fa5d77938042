// Arithmetic on complex tensors. Inductor writes no kernels for them: generated code calls these
// operators by name.

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/pointwise.h"
#include "runtime/slim/ops/reduce.h"

namespace aoti::slim {
namespace {

// Calls function.operator()<std::complex<T>>(), where T is float or double.
template <typename Function>
decltype(auto) DispatchComplex(const char* name, ScalarType dtype, const Function& function) {
  Require(IsComplex(dtype), name, ": dtype is ", NameOf(dtype), ", must be complex");
  if (dtype == ScalarType::kComplex64) return function.template operator()<std::complex<float>>();
  return function.template operator()<std::complex<double>>();
}

template <typename Function>
void Unary(const char* name, StableIValue* stack, const Function& function) {
  const TensorPtr self = TakeTensor(stack[0]);
  TensorPtr out = EmptyLike(*self);
  DispatchComplex(name, self->dtype(), [&]<typename T>() { Map<T, T>(*out, *self, function); });
  stack[0] = Give(std::move(out));
}

void Neg(StableIValue* stack) {
  Unary("neg", stack, [](auto z) { return -z; });
}
void Conj(StableIValue* stack) {
  Unary("conj", stack, [](auto z) { return std::conj(z); });
}
void Reciprocal(StableIValue* stack) {
  Unary("reciprocal", stack, [](auto z) { return decltype(z)(1) / z; });
}
void Exp(StableIValue* stack) {
  Unary("exp", stack, [](auto z) { return std::exp(z); });
}
void Log(StableIValue* stack) {
  Unary("log", stack, [](auto z) { return std::log(z); });
}
void Sqrt(StableIValue* stack) {
  Unary("sqrt", stack, [](auto z) { return std::sqrt(z); });
}
void Sin(StableIValue* stack) {
  Unary("sin", stack, [](auto z) { return std::sin(z); });
}
void Cos(StableIValue* stack) {
  Unary("cos", stack, [](auto z) { return std::cos(z); });
}
void Tanh(StableIValue* stack) {
  Unary("tanh", stack, [](auto z) { return std::tanh(z); });
}
// self / |self|, or 0 where self is 0.
void Sgn(StableIValue* stack) {
  Unary("sgn", stack, [](auto z) {
    const auto length = std::abs(z);
    return length == 0 ? decltype(z)(0) : z / length;
  });
}

void Divide(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]), other = TakeTensor(stack[1]);
  const ScalarType dtype = ResultType(*self, *other);
  const TensorPtr a = As(*self, dtype), b = As(*other, dtype);
  TensorPtr out = EmptyResult(dtype, *self, *other);
  DispatchComplex("div", dtype,
                  [&]<typename T>() { Map2<T>(*out, *a, *b, [](T x, T y) { return x / y; }); });
  stack[0] = Give(std::move(out));
}

void Complex(StableIValue* stack) {
  const TensorPtr real = TakeTensor(stack[0]), imaginary = TakeTensor(stack[1]);
  const bool narrow = real->dtype() == ScalarType::kFloat32;
  Require(real->dtype() == imaginary->dtype() && (narrow || real->dtype() == ScalarType::kFloat64),
          "complex: the parts are ", NameOf(real->dtype()), " and ", NameOf(imaginary->dtype()),
          ", must both be float32 or both float64");
  TensorPtr out =
      EmptyResult(narrow ? ScalarType::kComplex64 : ScalarType::kComplex128, *real, *imaginary);
  const Shape real_strides = BroadcastStrides(*real, out->sizes());
  const Shape imaginary_strides = BroadcastStrides(*imaginary, out->sizes());
  DispatchComplex("complex", out->dtype(), [&]<typename T>() {
    using Part = typename T::value_type;
    ForEachRun(out->sizes(), {out->strides(), real_strides, imaginary_strides}, Order::kAny, kGrain,
               [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   out->data<T>()[offsets[0] + i * steps[0]] = {
                       real->data<Part>()[offsets[1] + i * steps[1]],
                       imaginary->data<Part>()[offsets[2] + i * steps[2]]};
                 }
               });
  });
  stack[0] = Give(std::move(out));
}

enum class Reduction { kSum, kMean };

// Reduces some dims (all if none is given), in double.
TensorPtr Reduce(const Tensor& self, Ints dims, bool keepdim, Reduction reduction) {
  if (reduction == Reduction::kSum && !IsComplex(self.dtype())) {
    return SumOfReal(self, dims, keepdim);
  }
  bool summed[kMaxRank] = {};
  for (const std::int64_t dim : dims) summed[WrapDim(dim, self.rank())] = true;
  Shape kept, walked, sizes;
  for (std::int64_t d = 0; d < self.rank(); ++d) {
    const bool sum = dims.empty() || summed[d];
    kept.Append(sum ? 1 : self.size(d));
    if (!sum) sizes.Append(self.size(d));
    if (sum && keepdim) sizes.Append(1);
  }
  const TensorPtr sums = Empty(ScalarType::kComplex128, kept);
  auto* total = sums->data<std::complex<double>>();
  std::fill_n(total, sums->numel(), std::complex<double>());
  for (std::size_t d = 0; d < kept.size(); ++d) {
    walked.Append(kept[d] == 1 ? 0 : sums->strides()[d]);
  }
  DispatchComplex("sum", self.dtype(), [&]<typename T>() {
    ForEachRunAlong(
        self.sizes(), {self.strides(), walked}, -1,
        [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
          const T* from = self.data<T>() + offsets[0];
          for (std::int64_t i = 0; i < count; ++i) {
            total[offsets[1] + i * steps[1]] += std::complex<double>(from[i * steps[0]]);
          }
        });
  });
  const std::int64_t groups = std::max<std::int64_t>(sums->numel(), 1);
  const double divisor =
      reduction == Reduction::kSum ? 1 : static_cast<double>(self.numel() / groups);
  TensorPtr out = Empty(self.dtype(), sizes);
  DispatchComplex("sum", self.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < out->numel(); ++i) {
      out->data<T>()[i] = static_cast<T>(total[i] / divisor);
    }
  });
  return out;
}

// sum.dim_IntList and mean.dim: self, dim, keepdim, dtype.
template <Reduction reduction>
void ReduceDims(StableIValue* stack) {
  const TensorPtr given = TakeTensor(stack[0]);
  std::optional<TakenList> dims;
  if (const std::optional<StableIValue> list = TakeOptional(stack[1])) dims.emplace(*list);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[3]);
  const TensorPtr self = dtype ? As(*given, *dtype) : TensorPtr(new Tensor(*given));
  stack[0] = Give(Reduce(*self, dims ? dims->ints() : Ints{}, TakeBool(stack[2]), reduction));
}

// sum.IntList_out: self, dim, keepdim, dtype, out.
void SumInto(StableIValue* stack) {
  TensorPtr out = TakeTensor(stack[4]);
  ReduceDims<Reduction::kSum>(stack);
  const TensorPtr sum = TakeTensor(stack[0]);
  Require(std::ranges::equal(out->sizes(), sum->sizes()), "sum: out has other sizes than the sum");
  Copy(*out, *sum);
  stack[0] = Give(std::move(out));
}

// sum and mean of all elements: self, dtype.
template <Reduction reduction>
void ReduceAll(StableIValue* stack) {
  const TensorPtr given = TakeTensor(stack[0]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[1]);
  const TensorPtr self = dtype ? As(*given, *dtype) : TensorPtr(new Tensor(*given));
  stack[0] = Give(Reduce(*self, {}, /*keepdim=*/false, reduction));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_neg, "aten::neg", "", aoti::slim::Neg)
AOTI_SLIM_DISPATCHER_OP(aten__conj, "aten::_conj", "", aoti::slim::Conj)
AOTI_SLIM_DISPATCHER_OP(aten_conj_physical, "aten::conj_physical", "", aoti::slim::Conj)
AOTI_SLIM_DISPATCHER_OP(aten_reciprocal, "aten::reciprocal", "", aoti::slim::Reciprocal)
AOTI_SLIM_DISPATCHER_OP(aten_exp, "aten::exp", "", aoti::slim::Exp)
AOTI_SLIM_DISPATCHER_OP(aten_log, "aten::log", "", aoti::slim::Log)
AOTI_SLIM_DISPATCHER_OP(aten_sqrt, "aten::sqrt", "", aoti::slim::Sqrt)
AOTI_SLIM_DISPATCHER_OP(aten_sin, "aten::sin", "", aoti::slim::Sin)
AOTI_SLIM_DISPATCHER_OP(aten_cos, "aten::cos", "", aoti::slim::Cos)
AOTI_SLIM_DISPATCHER_OP(aten_tanh, "aten::tanh", "", aoti::slim::Tanh)
AOTI_SLIM_DISPATCHER_OP(aten_sgn, "aten::sgn", "", aoti::slim::Sgn)
AOTI_SLIM_DISPATCHER_OP(aten_div_Tensor, "aten::div", "Tensor", aoti::slim::Divide)
AOTI_SLIM_DISPATCHER_OP(aten_complex, "aten::complex", "", aoti::slim::Complex)
AOTI_SLIM_DISPATCHER_OP(aten_sum, "aten::sum", "",
                        aoti::slim::ReduceAll<aoti::slim::Reduction::kSum>)
AOTI_SLIM_DISPATCHER_OP(aten_mean, "aten::mean", "",
                        aoti::slim::ReduceAll<aoti::slim::Reduction::kMean>)
AOTI_SLIM_DISPATCHER_OP(aten_sum_dim_IntList, "aten::sum", "dim_IntList",
                        aoti::slim::ReduceDims<aoti::slim::Reduction::kSum>)
AOTI_SLIM_DISPATCHER_OP(aten_sum_IntList_out, "aten::sum", "IntList_out", aoti::slim::SumInto)
AOTI_SLIM_DISPATCHER_OP(aten_mean_dim, "aten::mean", "dim",
                        aoti::slim::ReduceDims<aoti::slim::Reduction::kMean>)
