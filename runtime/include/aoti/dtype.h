// Element types, and the C++ types that hold them.

#ifndef AOTI_DTYPE_H_
#define AOTI_DTYPE_H_

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aoti/cxx20.h"

namespace aoti {

// Numbered as torch numbers its scalar types.
enum class DType : std::int8_t {
  // BEGIN enumerators: generated from toolchain/tables by ./bazelw run //tools/tables:update
  kUInt8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplex64 = 9,
  kBool = 11,
  kBFloat16 = 15,
  // END enumerators
};

// The name that torch gives the dtype, such as "float32"; "unknown" for a value that is not a
// DType.
std::string_view to_string(DType dtype);

// Bytes per element; 0 for a value that is not a DType.
std::size_t SizeOf(DType dtype);

// IEEE 754 binary16, as torch.float16. A storage type: convert to float to compute.
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  // Rounds to nearest, ties to even; values that are too large become infinite.
  explicit Half(float value);
  explicit operator float() const;
  static Half FromBits(std::uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }
};

// The upper half of an IEEE 754 binary32, as torch.bfloat16. A storage type: convert to float to
// compute.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  // Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool nan = (word & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = word + 0x7fffU + ((word >> 16) & 1U);
    bits = static_cast<std::uint16_t>(nan ? (word >> 16) | 0x40U : rounded >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static BFloat16 FromBits(std::uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }
};

// The DType of a C++ element type: DTypeOf<float> == DType::kFloat32.
template <typename T>
inline constexpr DType DTypeOf = [] {
  static_assert(sizeof(T) == 0, "no tensor has elements of this type");
  return DType();
}();
template <typename T>
inline constexpr DType DTypeOf<const T> = DTypeOf<T>;
// BEGIN element_types: generated from toolchain/tables by ./bazelw run //tools/tables:update
template <>
inline constexpr DType DTypeOf<std::uint8_t> = DType::kUInt8;
template <>
inline constexpr DType DTypeOf<std::int8_t> = DType::kInt8;
template <>
inline constexpr DType DTypeOf<std::int16_t> = DType::kInt16;
template <>
inline constexpr DType DTypeOf<std::int32_t> = DType::kInt32;
template <>
inline constexpr DType DTypeOf<std::int64_t> = DType::kInt64;
template <>
inline constexpr DType DTypeOf<Half> = DType::kFloat16;
template <>
inline constexpr DType DTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType DTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType DTypeOf<std::complex<float>> = DType::kComplex64;
template <>
inline constexpr DType DTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType DTypeOf<BFloat16> = DType::kBFloat16;
// END element_types

}  // namespace aoti

#endif  // AOTI_DTYPE_H_
