// Element types, and the C++ types that hold them.

#ifndef AOTI_DTYPE_H_
#define AOTI_DTYPE_H_

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "aoti/cxx20.h"

namespace aoti {

// Numbered as torch numbers its scalar types.
enum class DType : std::int8_t {
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
};

// torch's name, such as "float32"; "unknown" for a number that is no DType.
std::string_view to_string(DType dtype);

// Bytes per element; 0 for a number that is no DType.
std::size_t SizeOf(DType dtype);

// IEEE 754 binary16, torch.float16. For storage: convert to float to compute.
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  // Rounds to nearest, ties to even; what is too large becomes an infinity.
  explicit Half(float value);
  explicit operator float() const;
  static Half FromBits(std::uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }
};

// The upper half of an IEEE 754 binary32, torch.bfloat16. For storage: convert to float to compute.
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

namespace internal {

template <typename T>
struct DTypeOfImpl;  // An element type that no tensor has.

#define AOTI_DTYPE_OF(type, dtype)                \
  template <>                                     \
  struct DTypeOfImpl<type> {                      \
    static constexpr DType kValue = DType::dtype; \
  }
AOTI_DTYPE_OF(std::uint8_t, kUInt8);
AOTI_DTYPE_OF(std::int8_t, kInt8);
AOTI_DTYPE_OF(std::int16_t, kInt16);
AOTI_DTYPE_OF(std::int32_t, kInt32);
AOTI_DTYPE_OF(std::int64_t, kInt64);
AOTI_DTYPE_OF(Half, kFloat16);
AOTI_DTYPE_OF(float, kFloat32);
AOTI_DTYPE_OF(double, kFloat64);
AOTI_DTYPE_OF(std::complex<float>, kComplex64);
AOTI_DTYPE_OF(bool, kBool);
AOTI_DTYPE_OF(BFloat16, kBFloat16);
#undef AOTI_DTYPE_OF

}  // namespace internal

// The DType of a C++ element type: DTypeOf<float> == DType::kFloat32.
template <typename T>
inline constexpr DType DTypeOf = internal::DTypeOfImpl<std::remove_cv_t<T>>::kValue;

}  // namespace aoti

#endif  // AOTI_DTYPE_H_
