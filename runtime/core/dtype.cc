#include "aoti/dtype.h"

#include "runtime/core/dtype_table.h"

namespace aoti {

std::string_view to_string(DType dtype) {
  const internal::DTypeFacts* facts = internal::FactsOf(dtype);
  return facts == nullptr ? "unknown" : facts->name;
}

std::size_t SizeOf(DType dtype) {
  const internal::DTypeFacts* facts = internal::FactsOf(dtype);
  return facts == nullptr ? 0 : facts->bytes;
}

Half::Half(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (word >> 16) & 0x8000U;
  const std::uint32_t magnitude = word & 0x7fffffffU;
  std::uint32_t result;
  if (magnitude > 0x7f800000U) {  // NaN
    result = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // rounds to 65520 or more: infinity
    result = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: subnormal or zero
    // Adding 0.5 shifts the result into the lowest mantissa bits, and the FPU rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    result = (magnitude - 0x38000000U + 0xfffU + odd) >> 13;
  }
  bits = static_cast<std::uint16_t>(sign | result);
}

Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

}  // namespace aoti
