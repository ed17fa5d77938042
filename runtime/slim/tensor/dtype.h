// Scalar types, by the numbers that the C ABI gives them.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_DTYPE_H_
#define AOTI_RUNTIME_SLIM_TENSOR_DTYPE_H_

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "runtime/slim/tensor/error.h"

namespace aoti::slim {

using Half = c10::Half;
using BFloat16 = c10::BFloat16;

enum class DType : std::int32_t {
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex64 = 9,
  kComplex128 = 10,
  kBool = 11,
  kBFloat16 = 15,
  kUInt16 = 27,
  kUInt32 = 28,
  kUInt64 = 29,
};

// Throws OpError for a number that is none of the above.
std::size_t SizeOf(DType dtype);
const char* NameOf(DType dtype);  // "float32"
bool IsFloating(DType dtype);     // float16, bfloat16, float32, float64
bool IsIntegral(DType dtype);     // integers and bool
bool IsComplex(DType dtype);

// Calls function.template operator()<T>() with the C++ type of `dtype`.
//   Dispatch(tensor.dtype(), [&]<typename T>() { Fill<T>(tensor); });
template <typename Function>
decltype(auto) DispatchReal(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kUInt8:
      return function.template operator()<std::uint8_t>();
    case DType::kInt8:
      return function.template operator()<std::int8_t>();
    case DType::kInt16:
      return function.template operator()<std::int16_t>();
    case DType::kInt32:
      return function.template operator()<std::int32_t>();
    case DType::kInt64:
      return function.template operator()<std::int64_t>();
    case DType::kFloat16:
      return function.template operator()<Half>();
    case DType::kFloat32:
      return function.template operator()<float>();
    case DType::kFloat64:
      return function.template operator()<double>();
    case DType::kBool:
      return function.template operator()<bool>();
    case DType::kBFloat16:
      return function.template operator()<BFloat16>();
    default:
      throw OpError(Text("dtype ", NameOf(dtype), " is not supported here"));
  }
}

template <typename Function>
decltype(auto) DispatchFloating(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kFloat16:
      return function.template operator()<Half>();
    case DType::kFloat32:
      return function.template operator()<float>();
    case DType::kFloat64:
      return function.template operator()<double>();
    case DType::kBFloat16:
      return function.template operator()<BFloat16>();
    default:
      throw OpError(Text("dtype ", NameOf(dtype), " is not supported here, a floating one is"));
  }
}

template <typename Function>
decltype(auto) DispatchIndex(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kInt32:
      return function.template operator()<std::int32_t>();
    case DType::kInt64:
      return function.template operator()<std::int64_t>();
    default:
      throw OpError(Text("indices are ", NameOf(dtype), ", must be int32 or int64"));
  }
}

template <typename Function>
decltype(auto) DispatchAll(DType dtype, const Function& function) {
  if (dtype == DType::kComplex64) return function.template operator()<std::complex<float>>();
  if (dtype == DType::kComplex128) return function.template operator()<std::complex<double>>();
  return DispatchReal(dtype, function);
}

// Calls function.template operator()<T>() with an unsigned type of the dtype's size, for operators
// that only move elements.
template <typename Function>
decltype(auto) DispatchBySize(DType dtype, const Function& function) {
  switch (SizeOf(dtype)) {
    case 1:
      return function.template operator()<std::uint8_t>();
    case 2:
      return function.template operator()<std::uint16_t>();
    case 4:
      return function.template operator()<std::uint32_t>();
    case 8:
      return function.template operator()<std::uint64_t>();
    default:
      return function.template operator()<unsigned __int128>();
  }
}

// The type that sums of T are kept in: float for the 16-bit ones, int64 for integers.
template <typename T>
using Accumulator =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                       std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>;

// Sums and products. Integers wrap around, as PyTorch's do.
template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return static_cast<T>(a + b);
  }
}
template <typename T>
T Times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return static_cast<T>(a * b);
  }
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_DTYPE_H_
