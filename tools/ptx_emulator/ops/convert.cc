// cvt between all types, alone and in pairs.

#include <algorithm>
#include <limits>

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/float8.h"
#include "tools/ptx_emulator/ops/rounding.h"
#include "tools/ptx_emulator/ops/scalar.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

bool IsInt(Type type) { return !IsFloating(type); }

// The integer of a word, sign-extended for signed types.
__int128 IntegerOf(Type type, uint64_t word) {
  int unused = 64 - 8 * Bytes(type);
  if (IsSigned(type)) return static_cast<int64_t>(word << unused) >> unused;
  return word << unused >> unused;
}

__int128 Lowest(Type type) {
  return IsSigned(type) ? -(static_cast<__int128>(1) << (8 * Bytes(type) - 1)) : 0;
}
__int128 Highest(Type type) {
  return (static_cast<__int128>(1) << (8 * Bytes(type) - (IsSigned(type) ? 1 : 0))) - 1;
}

double FloatingOf(const Instruction& in, uint64_t word) {
  switch (in.from) {
    case Type::kF16:
      return FloatFromHalf(static_cast<uint16_t>(word));
    case Type::kBf16:
      return FloatFromBfloat(static_cast<uint16_t>(word));
    case Type::kF64:
      return std::bit_cast<double>(word);
    default: {
      float value = Read<float>(word);
      return in.flush ? FlushSubnormal(value) : value;
    }
  }
}

uint64_t FloatingWord(const Instruction& in, double value) {
  switch (in.type) {
    case Type::kF16:
      return HalfBits(value, in.rounding);
    case Type::kBf16:
      return BfloatBits(value, in.rounding);
    case Type::kF64:
      return Word<double>(value);
    case Type::kTf32:
      // 10 bits of the fraction; the rest are zeros.
      return Word<float>(static_cast<float>(RoundToFormat(value, 10, -126, in.rounding)));
    default: {
      auto result = FromDouble<float>(value, in.rounding);
      return Word<float>(in.flush ? FlushSubnormal(result) : result);
    }
  }
}

uint64_t FloatToInteger(const Instruction& in, double value) {
  // NaN becomes 0, except that the 64-bit types have their top bit set.
  if (value != value) return Bytes(in.type) == 8 ? 1ull << 63 : 0;
  double whole = RoundToMultiple(value, 0, in.rounding);
  __int128 low = Lowest(in.type);
  __int128 high = Highest(in.type);
  if (whole <= static_cast<double>(low)) return static_cast<uint64_t>(low);
  if (whole >= static_cast<double>(high)) return static_cast<uint64_t>(high);
  return static_cast<uint64_t>(static_cast<__int128>(whole));
}

// An integer as double, the last bit of an inexact one set: 64 bits do not fit.
double IntegerToDouble(__int128 value, bool to_odd) {
  auto nearest = static_cast<double>(value);
  if (!to_odd) return nearest;
  auto back = static_cast<__int128>(nearest);
  if (back == value) return nearest;
  uint64_t bits = std::bit_cast<uint64_t>(nearest);
  if (bits & 1) return nearest;
  bool grow = (value > back) == (value > 0);
  return std::bit_cast<double>(grow ? bits | 1 : (bits - 1) | 1);
}

uint64_t ConvertWord(const Instruction& in, uint64_t word) {
  if (IsInt(in.from) && IsInt(in.type)) {
    __int128 value = IntegerOf(in.from, word);
    if (in.saturate) value = std::clamp(value, Lowest(in.type), Highest(in.type));
    // A register that is wider than the type gets its sign.
    if (IsSigned(in.type))
      return static_cast<uint64_t>(IntegerOf(in.type, static_cast<uint64_t>(value)));
    return static_cast<uint64_t>(IntegerOf(in.type, static_cast<uint64_t>(value)));
  }
  if (IsInt(in.from)) {
    return FloatingWord(in, IntegerToDouble(IntegerOf(in.from, word), in.type != Type::kF64));
  }
  double value = FloatingOf(in, word);
  if (!IsInt(in.type)) {
    if (in.to_integer) value = RoundToMultiple(value, 0, in.rounding);
    if (in.saturate) value = value > 1 ? 1 : value > 0 ? value : 0;
    if (in.detail != 0 && value < 0) value = 0;  // .relu
    return FloatingWord(in, value);
  }
  return FloatToInteger(in, value);
}

void Convert(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  ForLanes(mask, [&](int i) { d[i] = ConvertWord(in, a[i]); });
}

// Conversions without any rounding, which are most of them.
void ConvertHalf(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  ForLanes(mask, [=](int i) { d[i] = Word<float>(FloatFromHalf(static_cast<uint16_t>(a[i]))); });
}

// Two floats to a pair: the first is the upper half.
void ConvertToPair(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  ForLanes(mask, [&](int i) {
    auto part = [&](uint64_t word) -> uint64_t {
      double value = FloatingOf(in, word);
      if (in.detail != 0 && value < 0) value = 0;  // .relu
      switch (in.type) {
        case Type::kF16x2:
          return HalfBits(value, in.rounding);
        case Type::kBf16x2:
          return BfloatBits(value, in.rounding);
        default:
          return Float8Bits(value, in.type == Type::kE4m3x2);
      }
    };
    int width = 4 * Bytes(in.type);
    d[i] = part(a[i]) << width | part(b[i]);
  });
}

// Pairs of 8-bit floats to and from f16x2.
void ConvertPair(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  ForLanes(mask, [&](int i) {
    uint64_t result = 0;
    for (int part = 0; part < 2; ++part) {
      if (in.type == Type::kF16x2) {
        auto bits = static_cast<uint8_t>(a[i] >> (8 * part));
        uint64_t half = HalfBits(FloatFromFloat8(bits, in.from == Type::kE4m3x2));
        result |= half << (16 * part);
      } else {
        double value = FloatFromHalf(static_cast<uint16_t>(a[i] >> (16 * part)));
        uint64_t small = Float8Bits(value, in.type == Type::kE4m3x2);
        result |= small << (8 * part);
      }
    }
    d[i] = result;
  });
}

bool IsPair8(Type type) { return type == Type::kE4m3x2 || type == Type::kE5m2x2; }

}  // namespace

bool DecodeConvert(const Statement& s, Instruction& in) {
  if (s.opcode != "cvt" || s.types.size() != 2) return false;
  if (!OnlyModifiers(s, {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "ftz", "sat",
                         "satfinite", "relu"})) {
    return false;
  }
  in.rounding = RoundingOf(s);
  in.to_integer = s.Has("rni") || s.Has("rzi") || s.Has("rmi") || s.Has("rpi");
  in.detail = s.Has("relu") ? 1 : 0;
  if (s.operands.size() == 3) {
    in.run = ConvertToPair;
    return in.from == Type::kF32 &&
           (in.type == Type::kF16x2 || in.type == Type::kBf16x2 || IsPair8(in.type)) &&
           SimpleOperands(s, in, 2);
  }
  if (!SimpleOperands(s, in, 1)) return false;
  if (IsPair8(in.type) || IsPair8(in.from)) {
    in.run = ConvertPair;
    return in.type == Type::kF16x2 || in.from == Type::kF16x2;
  }
  if (in.type == Type::kF16x2 || in.type == Type::kBf16x2 || Bytes(in.type) > 8) return false;
  in.run = in.type == Type::kF32 && in.from == Type::kF16 && !in.saturate && !in.to_integer
               ? ConvertHalf
               : Convert;
  return true;
}

}  // namespace ptx_emulator
