#include "tools/ptx_emulator/ops/scalar.h"

#include <algorithm>
#include <limits>

namespace ptx_emulator {

double RoundToMultiple(double value, int unit, Rounding rounding) {
  double scaled = std::ldexp(value, -unit);
  double whole = scaled;
  switch (rounding) {
    case Rounding::kNearestEven: {
      // Independent of the host's rounding mode.
      double low = std::floor(scaled);
      double rest = scaled - low;
      bool up = rest > 0.5 || (rest == 0.5 && std::fmod(low, 2) != 0);
      whole = low + (up ? 1 : 0);
      break;
    }
    case Rounding::kNearestAway:
      whole = std::round(scaled);
      break;
    case Rounding::kZero:
      whole = std::trunc(scaled);
      break;
    case Rounding::kDown:
      whole = std::floor(scaled);
      break;
    case Rounding::kUp:
      whole = std::ceil(scaled);
      break;
  }
  return std::copysign(std::ldexp(whole, unit), value);
}

double RoundToFormat(double value, int mantissa, int lowest, Rounding rounding) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = std::max(std::ilogb(value), lowest);
  double rounded = RoundToMultiple(value, exponent - mantissa, rounding);
  double most = std::ldexp(2 - std::ldexp(1.0, -mantissa), 1 - lowest);
  if (std::fabs(rounded) <= most) return rounded;
  bool to_finite = rounding == Rounding::kZero || (rounding == Rounding::kDown && value > 0) ||
                   (rounding == Rounding::kUp && value < 0);
  return std::copysign(to_finite ? most : std::numeric_limits<double>::infinity(), value);
}

uint16_t HalfBits(double value, Rounding rounding) {
  if (value != value) return 0x7FFF;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(RoundToFormat(value, 10, -14, rounding));
  if (std::isinf(magnitude)) return sign | 0x7C00;
  if (magnitude < PowerOfTwo(-14)) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(magnitude, 24)));
  }
  int exponent = std::ilogb(magnitude);
  auto fraction = static_cast<uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

uint16_t BfloatBits(double value, Rounding rounding) {
  if (value != value) return 0x7FFF;
  double rounded = RoundToFormat(value, 7, -126, rounding);
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16);
}

float FloatFromHalf(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t rest = bits & 0x7FFF;
  if (rest >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (rest & 0x3FF) << 13);
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  float magnitude = static_cast<float>(rest) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace ptx_emulator
