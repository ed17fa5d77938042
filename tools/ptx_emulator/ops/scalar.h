// Numbers as instructions see them: what a 64-bit word of a register is as a value of a type.

#ifndef PTX_EMULATOR_OPS_SCALAR_H_
#define PTX_EMULATOR_OPS_SCALAR_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tools/ptx_emulator/ptx/program.h"

namespace ptx_emulator {

// float16 and bfloat16 by their bits; arithmetic is done in double and rounded once.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

// 2^n for a normal result.
inline double PowerOfTwo(int n) {
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// Rounds to `digits` binary digits after the point of 2^unit... as a multiple of 2^unit.
double RoundToMultiple(double value, int unit, Rounding rounding);

// The nearest value with `mantissa` bits (without the leading one) and exponents from `lowest`.
double RoundToFormat(double value, int mantissa, int lowest, Rounding rounding);

uint16_t HalfBits(double value, Rounding rounding = Rounding::kNearestEven);
uint16_t BfloatBits(double value, Rounding rounding = Rounding::kNearestEven);
float FloatFromHalf(uint16_t bits);
inline float FloatFromBfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// a + b with the last bit set if the sum is inexact: rounding it to a narrower format gives what
// rounding the exact sum gives.
inline double AddToOdd(double a, double b) {
  double sum = a + b;
  double part = sum - a;
  double error = (a - (sum - part)) + (b - part);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  bool inexact = error > 0 || error < 0;
  bool away = (error > 0) == (sum > 0);
  uint64_t odd = away ? bits | 1 : (bits - 1) | 1;
  return inexact && (bits & 1) == 0 ? std::bit_cast<double>(odd) : sum;
}

inline constexpr uint32_t kNanBits = 0x7FFFFFFF;
inline constexpr uint64_t kDoubleNanBits = 0x7FF8000000000000;

// Subnormal numbers become zeros of their sign, for .ftz.
inline float FlushSubnormal(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x7F800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : value;
}

// Reads a word as a T.
template <typename T>
inline T Read(uint64_t word) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(word));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(word);
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half{static_cast<uint16_t>(word)};
  } else if constexpr (std::is_same_v<T, Bfloat>) {
    return Bfloat{static_cast<uint16_t>(word)};
  } else {
    return static_cast<T>(word);
  }
}

// Writes a T into a word. NaNs are those of a GPU: one pattern per type.
template <typename T>
inline uint64_t Word(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value != value ? kNanBits : std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value != value ? kDoubleNanBits : std::bit_cast<uint64_t>(value);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    return value.bits;
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

inline double ToDouble(Half value) { return FloatFromHalf(value.bits); }
inline double ToDouble(Bfloat value) { return FloatFromBfloat(value.bits); }
inline double ToDouble(float value) { return value; }
inline double ToDouble(double value) { return value; }

// Rounds a double, which may be one of AddToOdd, to a T.
template <typename T>
inline T FromDouble(double value, Rounding rounding) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{HalfBits(value, rounding)};
  } else if constexpr (std::is_same_v<T, Bfloat>) {
    return Bfloat{BfloatBits(value, rounding)};
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    float nearest = static_cast<float>(value);
    if (rounding == Rounding::kNearestEven || nearest != nearest) return nearest;
    return static_cast<float>(RoundToFormat(value, 23, -126, rounding));
  }
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_SCALAR_H_
