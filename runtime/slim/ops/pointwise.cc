#include "runtime/slim/ops/pointwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <utility>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/indexing.h"

namespace aoti::slim {

namespace {

enum class Category { kBool, kInteger, kFloating, kComplex };

Category CategoryOf(ScalarType dtype) {
  if (dtype == ScalarType::kBool) return Category::kBool;
  if (IsComplex(dtype)) return Category::kComplex;
  return IsFloating(dtype) ? Category::kFloating : Category::kInteger;
}

}  // namespace

ScalarType Promote(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (CategoryOf(a) < CategoryOf(b)) std::swap(a, b);
  if (CategoryOf(a) != CategoryOf(b)) {
    const bool wide = a == ScalarType::kComplex64 && b == ScalarType::kFloat64;
    return wide ? ScalarType::kComplex128 : a;
  }
  if (SizeOf(a) < SizeOf(b)) std::swap(a, b);
  if (SizeOf(a) != SizeOf(b)) {
    // uint8 is the only unsigned dtype that PyTorch promotes, and all other dtypes can represent
    // it.
    return a;
  }
  return CategoryOf(a) == Category::kFloating ? ScalarType::kFloat32 : ScalarType::kInt16;
}

ScalarType ResultType(const Tensor& a, const Tensor& b) {
  if ((a.rank() == 0) != (b.rank() == 0)) {
    const ScalarType strong = a.rank() > 0 ? a.dtype() : b.dtype();
    const ScalarType weak = a.rank() > 0 ? b.dtype() : a.dtype();
    if (CategoryOf(strong) >= CategoryOf(weak)) return strong;
    if (IsFloating(strong)) {  // and the scalar is complex: with the tensor's precision
      return strong == ScalarType::kFloat64 ? ScalarType::kComplex128 : ScalarType::kComplex64;
    }
    return Promote(strong, weak);
  }
  return Promote(a.dtype(), b.dtype());
}

ScalarType ResultTypeWithDouble(const Tensor& a) {
  return IsIntegral(a.dtype()) ? ScalarType::kFloat32 : a.dtype();
}

TensorPtr As(const Tensor& tensor, ScalarType dtype) {
  if (tensor.dtype() == dtype) return TensorPtr(new Tensor(tensor));
  TensorPtr copy = EmptyLike(tensor, dtype);
  Copy(*copy, tensor);
  return copy;
}

TensorPtr EmptyResult(ScalarType dtype, const Tensor& a, const Tensor& b) {
  const Shape sizes = BroadcastSizes(a.sizes(), b.sizes());
  const Shape operands[] = {BroadcastStrides(a, sizes), BroadcastStrides(b, sizes)};
  return EmptyStrided(dtype, sizes, ResultStrides(sizes, operands, 2));
}

namespace {

// The type in which PyTorch's kernels compute: float for 16-bit types.
template <typename T>
auto Wide(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

TensorPtr Abs(const Tensor& self) {
  if (self.dtype() == ScalarType::kComplex64 || self.dtype() == ScalarType::kComplex128) {
    const bool narrow = self.dtype() == ScalarType::kComplex64;
    TensorPtr out = EmptyLike(self, narrow ? ScalarType::kFloat32 : ScalarType::kFloat64);
    if (narrow) {
      Map<float, std::complex<float>>(*out, self, [](auto z) { return std::abs(z); });
    } else {
      Map<double, std::complex<double>>(*out, self, [](auto z) { return std::abs(z); });
    }
    return out;
  }
  TensorPtr out = EmptyLike(self);
  DispatchReal(self.dtype(), [&]<typename T>() {
    Map<T, T>(*out, self, [](T x) {
      if constexpr (std::is_unsigned_v<T>) {
        return x;
      } else if constexpr (std::is_integral_v<T>) {
        // The absolute value of the least integer wraps to itself, without undefined behaviour.
        using Bits = std::make_unsigned_t<T>;
        return static_cast<T>(x < 0 ? Bits(0) - static_cast<Bits>(x) : static_cast<Bits>(x));
      } else {
        return static_cast<T>(std::abs(Wide(x)));
      }
    });
  });
  return out;
}

template <typename T>
T AngleOf(T x) {
  return std::isnan(x) ? x : x < 0 ? std::numbers::pi_v<T> : T(0);
}

TensorPtr Angle(const Tensor& self) {
  const ScalarType dtype = self.dtype();
  if (IsComplex(dtype)) {
    const bool narrow = dtype == ScalarType::kComplex64;
    TensorPtr out = EmptyLike(self, narrow ? ScalarType::kFloat32 : ScalarType::kFloat64);
    if (narrow) {
      Map<float, std::complex<float>>(*out, self, [](auto z) { return std::arg(z); });
    } else {
      Map<double, std::complex<double>>(*out, self, [](auto z) { return std::arg(z); });
    }
    return out;
  }
  const TensorPtr in = As(self, IsIntegral(dtype) ? ScalarType::kFloat32 : dtype);
  TensorPtr out = EmptyLike(*in);
  DispatchFloating(in->dtype(), [&]<typename T>() {
    Map<T, T>(*out, *in, [](T x) { return static_cast<T>(AngleOf(Wide(x))); });
  });
  return out;
}

TensorPtr Polar(const Tensor& abs, const Tensor& angle) {
  Require(abs.dtype() == angle.dtype() &&
              (abs.dtype() == ScalarType::kFloat32 || abs.dtype() == ScalarType::kFloat64),
          "polar: abs is ", NameOf(abs.dtype()), " and angle ", NameOf(angle.dtype()),
          ", must both be float32 or both float64");
  const auto make = [&]<typename T>(ScalarType dtype) {
    TensorPtr out = EmptyResult(dtype, abs, angle);
    const Shape abs_strides = BroadcastStrides(abs, out->sizes());
    const Shape angle_strides = BroadcastStrides(angle, out->sizes());
    ForEachRun(out->sizes(), {out->strides(), abs_strides, angle_strides}, Order::kAny, kGrain / 8,
               [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                 auto* to = out->data<std::complex<T>>() + offsets[0];
                 for (std::int64_t i = 0; i < count; ++i) {
                   const T r = abs.data<T>()[offsets[1] + i * steps[1]];
                   const T phi = angle.data<T>()[offsets[2] + i * steps[2]];
                   to[i * steps[0]] = {r * std::cos(phi), r * std::sin(phi)};
                 }
               });
    return out;
  };
  if (abs.dtype() == ScalarType::kFloat32) return make.operator()<float>(ScalarType::kComplex64);
  return make.operator()<double>(ScalarType::kComplex128);
}

TensorPtr Add(const Tensor& self, const Tensor& other, double alpha, ScalarType dtype) {
  const TensorPtr a = As(self, dtype), b = As(other, dtype);
  TensorPtr out = EmptyResult(dtype, self, other);
  DispatchAll(dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      const bool factor = alpha != 0;
      Map2<T>(*out, *a, *b, [factor](T x, T y) { return x || (y && factor); });
    } else {
      using Factor = decltype(Wide(T()));
      const auto factor = static_cast<Factor>(alpha);
      Map2<T>(*out, *a, *b,
              [factor](T x, T y) { return static_cast<T>(Plus(Wide(x), Times(factor, Wide(y)))); });
    }
  });
  return out;
}

TensorPtr Multiply(const Tensor& self, const Tensor& other, ScalarType dtype) {
  const TensorPtr a = As(self, dtype), b = As(other, dtype);
  TensorPtr out = EmptyResult(dtype, self, other);
  DispatchAll(dtype, [&]<typename T>() {
    if constexpr (kIsComplex<T>) {
      // Written out, because the product of std::complex checks for NaN first.
      Map2<T>(*out, *a, *b, [](T x, T y) {
        return T(x.real() * y.real() - x.imag() * y.imag(),
                 x.real() * y.imag() + x.imag() * y.real());
      });
    } else {
      Map2<T>(*out, *a, *b, [](T x, T y) { return static_cast<T>(Times(Wide(x), Wide(y))); });
    }
  });
  return out;
}

template <typename T>
T IntegerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  }
  T result = 1;
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0) result = Times(result, base);
    base = Times(base, base);
  }
  return result;
}

TensorPtr Power(const Tensor& self, const Tensor& exponent, ScalarType dtype) {
  const TensorPtr a = As(self, dtype), b = As(exponent, dtype);
  TensorPtr out = EmptyResult(dtype, self, exponent);
  DispatchAll(dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      Map2<T>(*out, *a, *b, [](T x, T y) { return x || !y; });
    } else if constexpr (std::is_integral_v<T>) {
      Map2<T>(*out, *a, *b, IntegerPower<T>);
    } else {
      Map2<T>(*out, *a, *b, [](T x, T y) { return static_cast<T>(std::pow(Wide(x), Wide(y))); });
    }
  });
  return out;
}

TensorPtr PowerOfDouble(const Tensor& self, double exponent) {
  const ScalarType dtype = ResultTypeWithDouble(self);
  // Small powers are computed as products, as in PyTorch.
  if (exponent == 2 || exponent == 3) {
    const TensorPtr x = As(self, dtype);
    TensorPtr square = Multiply(*x, *x, dtype);
    return exponent == 2 ? std::move(square) : Multiply(*square, *x, dtype);
  }
  return Power(self, *FromDouble(exponent, dtype), dtype);
}

TensorPtr Gcd(const Tensor& self, const Tensor& other) {
  const ScalarType dtype = ResultType(self, other);
  Require(IsIntegral(dtype) && dtype != ScalarType::kBool, "gcd: dtype is ", NameOf(dtype),
          ", must be an integer");
  const TensorPtr a = As(self, dtype), b = As(other, dtype);
  TensorPtr out = EmptyResult(dtype, self, other);
  DispatchReal(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      Map2<T>(*out, *a, *b, [](T x, T y) {
        // An unsigned type, in which the least integer has an absolute value.
        const auto magnitude = [](T value) {
          const auto bits = static_cast<std::uint64_t>(value);
          return value < 0 ? 0 - bits : bits;
        };
        return static_cast<T>(std::gcd(magnitude(x), magnitude(y)));
      });
    }
  });
  return out;
}

void Fill(const Tensor& self, double value) { Copy(self, *FromDouble(value, self.dtype())); }

// Returns the periodic window.
TensorPtr HannWindow(std::int64_t length, const std::int32_t* dtype_argument) {
  const ScalarType dtype =
      dtype_argument == nullptr ? ScalarType::kFloat32 : static_cast<ScalarType>(*dtype_argument);
  Require(length >= 0, "hann_window: the length is ", length, ", must not be negative");
  TensorPtr out = Empty(dtype, {length});
  DispatchFloating(dtype, [&]<typename T>() {
    for (std::int64_t i = 0; i < length; ++i) {
      const double turn =
          2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
      const double value = length == 1 ? 1 : 0.5 - 0.5 * std::cos(turn);
      out->data<T>()[i] = static_cast<T>(static_cast<Accumulator<T>>(value));
    }
  });
  return out;
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::FromDouble;
using aoti::slim::Guarded;
using aoti::slim::ResultType;
using aoti::slim::ResultTypeWithDouble;

extern "C" {

AOTITorchError aoti_torch_cpu_abs(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Abs(*self).release(); });
}

AOTITorchError aoti_torch_cpu_angle(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Angle(*self).release(); });
}

AOTITorchError aoti_torch_cpu_polar(AtenTensorHandle abs, AtenTensorHandle angle,
                                    AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Polar(*abs, *angle).release(); });
}

AOTITorchError aoti_torch_cpu_add_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                         double alpha, AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = aoti::slim::Add(*self, *other, alpha, ResultType(*self, *other)).release(); });
}

AOTITorchError aoti_torch_cpu_add_Scalar(AtenTensorHandle self, double other, double alpha,
                                         AtenTensorHandle* ret0) {
  return Guarded([&] {
    const auto dtype = ResultTypeWithDouble(*self);
    *ret0 = aoti::slim::Add(*self, *FromDouble(other, dtype), alpha, dtype).release();
  });
}

AOTITorchError aoti_torch_cpu_mul_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                         AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = aoti::slim::Multiply(*self, *other, ResultType(*self, *other)).release(); });
}

AOTITorchError aoti_torch_cpu_mul_Scalar(AtenTensorHandle self, double other,
                                         AtenTensorHandle* ret0) {
  return Guarded([&] {
    const auto dtype = ResultTypeWithDouble(*self);
    *ret0 = aoti::slim::Multiply(*self, *FromDouble(other, dtype), dtype).release();
  });
}

AOTITorchError aoti_torch_cpu_pow_Tensor_Tensor(AtenTensorHandle self, AtenTensorHandle exponent,
                                                AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = aoti::slim::Power(*self, *exponent, ResultType(*self, *exponent)).release(); });
}

AOTITorchError aoti_torch_cpu_pow_Tensor_Scalar(AtenTensorHandle self, double exponent,
                                                AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::PowerOfDouble(*self, exponent).release(); });
}

AOTITorchError aoti_torch_cpu_pow_Scalar(double self, AtenTensorHandle exponent,
                                         AtenTensorHandle* ret0) {
  return Guarded([&] {
    const auto dtype = ResultTypeWithDouble(*exponent);
    *ret0 = aoti::slim::Power(*FromDouble(self, dtype), *exponent, dtype).release();
  });
}

AOTITorchError aoti_torch_cpu_gcd(AtenTensorHandle self, AtenTensorHandle other,
                                  AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Gcd(*self, *other).release(); });
}

AOTITorchError aoti_torch_cpu_fill__Scalar(AtenTensorHandle self, double value) {
  return Guarded([&] { aoti::slim::Fill(*self, value); });
}

AOTITorchError aoti_torch_cpu_hann_window(int64_t window_length, int32_t* dtype,
                                          int32_t* /*layout*/, int32_t* /*device*/,
                                          int32_t /*device_index_*/, int32_t* /*pin_memory*/,
                                          AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::HannWindow(window_length, dtype).release(); });
}

}  // extern "C"
