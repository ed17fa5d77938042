// 8-bit floating-point numbers: e4m3 (no infinity) and e5m2.

#ifndef PTX_EMULATOR_OPS_FLOAT8_H_
#define PTX_EMULATOR_OPS_FLOAT8_H_

#include <algorithm>

#include "tools/ptx_emulator/ops/scalar.h"

namespace ptx_emulator {

// Rounded to the nearest, and to the largest number instead of beyond it (.satfinite).
inline uint8_t Float8Bits(double value, bool e4m3) {
  if (value != value) return 0x7F;
  int mantissa = e4m3 ? 3 : 2;
  int lowest = e4m3 ? -6 : -14;
  double most = e4m3 ? 448 : 57344;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double magnitude =
      std::min(std::fabs(RoundToFormat(value, mantissa, lowest - 2, Rounding::kNearestEven)), most);
  if (std::fabs(value) < PowerOfTwo(lowest)) {
    magnitude = RoundToMultiple(std::fabs(value), lowest - mantissa, Rounding::kNearestEven);
  }
  if (magnitude < PowerOfTwo(lowest)) {
    return sign | static_cast<uint8_t>(std::ldexp(magnitude, mantissa - lowest));
  }
  int exponent = std::ilogb(magnitude);
  auto fraction = static_cast<int>(std::ldexp(magnitude, mantissa - exponent)) - (1 << mantissa);
  return static_cast<uint8_t>(sign | (exponent - lowest + 1) << mantissa | fraction);
}

inline float FloatFromFloat8(uint8_t bits, bool e4m3) {
  int mantissa = e4m3 ? 3 : 2;
  int lowest = e4m3 ? -6 : -14;
  int exponent = (bits & 0x7F) >> mantissa;
  int fraction = bits & ((1 << mantissa) - 1);
  double magnitude;
  if (e4m3 && (bits & 0x7F) == 0x7F) {
    magnitude = std::nan("");
  } else if (!e4m3 && exponent == 31) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, lowest - mantissa);
  } else {
    magnitude = std::ldexp((1 << mantissa) + fraction, exponent - 1 + lowest - mantissa);
  }
  return static_cast<float>(bits & 0x80 ? -magnitude : magnitude);
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_FLOAT8_H_
