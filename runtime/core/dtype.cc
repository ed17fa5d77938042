#include "aoti/dtype.h"

namespace aoti {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kComplex64:
      return "complex64";
    case DType::kBool:
      return "bool";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "unknown";
}

std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kBool:
      return 1;
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kComplex64:
      return 8;
  }
  return 0;
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
