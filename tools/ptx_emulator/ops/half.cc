// Arithmetic of pairs, f16x2 and bf16x2, which share a 32-bit register.

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/scalar.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

enum Kind { kAdd, kSubtract, kMultiply, kMultiplyAdd, kMinimum, kMaximum, kNegate, kAbsolute };

// What `detail` has besides the kind.
constexpr int64_t kKindMask = 15;
constexpr int64_t kPropagateNan = 16;
constexpr int64_t kRelu = 32;

double Extremum(double x, double y, bool maximum, bool propagate) {
  if (x != x || y != y) return propagate ? std::nan("") : x != x ? y : x;
  bool less = x < y || (x == y && std::signbit(x));
  return less == maximum ? y : x;
}

template <typename T>
uint16_t Apply(const Instruction& in, uint16_t a, uint16_t b, uint16_t c) {
  double x = ToDouble(T{a});
  double y = ToDouble(T{b});
  double result = 0;
  switch (in.detail & kKindMask) {
    case kNegate:
      return a ^ 0x8000;
    case kAbsolute:
      return a & 0x7FFF;
    case kAdd:
      result = AddToOdd(x, y);
      break;
    case kSubtract:
      result = AddToOdd(x, -y);
      break;
    case kMultiply:
      result = x * y;
      break;
    case kMultiplyAdd:
      result = AddToOdd(x * y, ToDouble(T{c}));
      break;
    case kMinimum:
    case kMaximum:
      result = Extremum(x, y, (in.detail & kKindMask) == kMaximum, in.detail & kPropagateNan);
      break;
  }
  if (in.saturate) result = result > 1 ? 1 : result > 0 ? result : 0;
  if ((in.detail & kRelu) && result < 0) result = 0;
  return FromDouble<T>(result, Rounding::kNearestEven).bits;
}

template <typename T>
void Pair(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = in.source[1] < 0 ? a : warp.Row(in.source[1]);
  const uint64_t* c = in.source[2] < 0 ? a : warp.Row(in.source[2]);
  ForLanes(mask, [&](int i) {
    uint32_t low = Apply<T>(in, static_cast<uint16_t>(a[i]), static_cast<uint16_t>(b[i]),
                            static_cast<uint16_t>(c[i]));
    uint32_t high = Apply<T>(in, static_cast<uint16_t>(a[i] >> 16),
                             static_cast<uint16_t>(b[i] >> 16), static_cast<uint16_t>(c[i] >> 16));
    d[i] = low | high << 16;
  });
}

}  // namespace

bool DecodeHalf(const Statement& s, Instruction& in) {
  if (s.types.size() != 1) return false;
  if (in.type != Type::kF16x2 && in.type != Type::kBf16x2) return false;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"add", kAdd},     {"sub", kSubtract}, {"mul", kMultiply}, {"fma", kMultiplyAdd},
      {"min", kMinimum}, {"max", kMaximum},  {"neg", kNegate},   {"abs", kAbsolute},
  };
  for (const auto& [name, kind] : kKinds) {
    if (s.opcode != name) continue;
    in.detail = kind | (s.Has("NaN") ? kPropagateNan : 0) | (s.Has("relu") ? kRelu : 0);
    in.run = in.type == Type::kF16x2 ? Pair<Half> : Pair<Bfloat>;
    int sources = kind == kMultiplyAdd ? 3 : kind >= kNegate ? 1 : 2;
    return OnlyModifiers(s, {"rn", "ftz", "sat", "NaN", "relu"}) &&
           !(s.Has("ftz") && in.type == Type::kF16x2) && SimpleOperands(s, in, sources);
  }
  return false;
}

}  // namespace ptx_emulator
