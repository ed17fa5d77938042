// The dtypes of tensors within a program.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_DTYPE_H_
#define AOTI_RUNTIME_SLIM_TENSOR_DTYPE_H_

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "aoti/dtype.h"
#include "runtime/slim/tensor/error.h"

namespace aoti::slim {

using Half = c10::Half;
using BFloat16 = c10::BFloat16;

// The numbers are those of the C ABI. aoti::DType has the dtypes of a model's inputs and outputs,
// with the same names and numbers. It is a separate type with fewer values, so that a user's switch
// need not name dtypes that no model takes or returns.
enum class ScalarType : std::int32_t {
  // BEGIN scalar_types: generated from toolchain/tables by ./bazelw run //tools/tables:update
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
  // END scalar_types
};

// Bytes per element. Throws OpError for a number that is not a dtype.
std::size_t SizeOf(ScalarType dtype);
std::string_view NameOf(ScalarType dtype);  // "float32"
bool IsFloating(ScalarType dtype);          // float16, bfloat16, float32, float64
bool IsIntegral(ScalarType dtype);          // integers and bool
bool IsComplex(ScalarType dtype);

// Calls function.template operator()<T>() with the C++ type of `dtype`.
//   Dispatch(tensor.dtype(), [&]<typename T>() { Fill<T>(tensor); });
template <typename Function>
decltype(auto) DispatchReal(ScalarType dtype, const Function& function) {
  switch (dtype) {
    // BEGIN real_cases: generated from toolchain/tables by ./bazelw run //tools/tables:update
    case ScalarType::kUInt8:
      return function.template operator()<std::uint8_t>();
    case ScalarType::kInt8:
      return function.template operator()<std::int8_t>();
    case ScalarType::kInt16:
      return function.template operator()<std::int16_t>();
    case ScalarType::kInt32:
      return function.template operator()<std::int32_t>();
    case ScalarType::kInt64:
      return function.template operator()<std::int64_t>();
    case ScalarType::kFloat16:
      return function.template operator()<Half>();
    case ScalarType::kFloat32:
      return function.template operator()<float>();
    case ScalarType::kFloat64:
      return function.template operator()<double>();
    case ScalarType::kBool:
      return function.template operator()<bool>();
    case ScalarType::kBFloat16:
      return function.template operator()<BFloat16>();
    // END real_cases
    default:
      throw OpError(StrCat("dtype ", NameOf(dtype), " is not supported here"));
  }
}

template <typename Function>
decltype(auto) DispatchFloating(ScalarType dtype, const Function& function) {
  switch (dtype) {
    // BEGIN floating_cases: generated from toolchain/tables by ./bazelw run //tools/tables:update
    case ScalarType::kFloat16:
      return function.template operator()<Half>();
    case ScalarType::kFloat32:
      return function.template operator()<float>();
    case ScalarType::kFloat64:
      return function.template operator()<double>();
    case ScalarType::kBFloat16:
      return function.template operator()<BFloat16>();
    // END floating_cases
    default:
      throw OpError(
          StrCat("dtype ", NameOf(dtype), " is not supported here, must be a floating-point one"));
  }
}

template <typename Function>
decltype(auto) DispatchIndex(ScalarType dtype, const Function& function) {
  switch (dtype) {
    case ScalarType::kInt32:
      return function.template operator()<std::int32_t>();
    case ScalarType::kInt64:
      return function.template operator()<std::int64_t>();
    default:
      throw OpError(StrCat("indices are ", NameOf(dtype), ", must be int32 or int64"));
  }
}

template <typename Function>
decltype(auto) DispatchAll(ScalarType dtype, const Function& function) {
  switch (dtype) {
    // BEGIN complex_cases: generated from toolchain/tables by ./bazelw run //tools/tables:update
    case ScalarType::kComplex64:
      return function.template operator()<std::complex<float>>();
    case ScalarType::kComplex128:
      return function.template operator()<std::complex<double>>();
    // END complex_cases
    default:
      return DispatchReal(dtype, function);
  }
}

// Calls function.template operator()<T>() with an unsigned type of the dtype's size, for operators
// that only move elements.
template <typename Function>
decltype(auto) DispatchBySize(ScalarType dtype, const Function& function) {
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

// The type in which values of T are summed: float for the 16-bit types, int64 for integers.
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
