// Functions of one operand: ex2, lg2, sin, cos, tanh, rcp, sqrt, rsqrt.
//
// What a GPU approximates is computed in double and rounded: more exact than the hardware.

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/dispatch.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

struct Exponential {
  static double Apply(double x) { return std::exp2(x); }
};
struct Logarithm {
  static double Apply(double x) { return std::log2(x); }
};
struct Sine {
  static double Apply(double x) { return std::sin(x); }
};
struct Cosine {
  static double Apply(double x) { return std::cos(x); }
};
struct HyperbolicTangent {
  static double Apply(double x) { return std::tanh(x); }
};
struct Reciprocal {
  static double Apply(double x) { return 1 / x; }
};
struct SquareRoot {
  static double Apply(double x) { return std::sqrt(x); }
};
struct ReciprocalRoot {
  static double Apply(double x) { return 1 / std::sqrt(x); }
};

template <typename Op>
struct Function {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    ForLanes(mask, [&](int i) {
      T value = Read<T>(a[i]);
      if constexpr (std::is_same_v<T, float>) {
        if (in.flush) value = FlushSubnormal(value);
      }
      T result = FromDouble<T>(Op::Apply(ToDouble(value)), Rounding::kNearestEven);
      if constexpr (std::is_same_v<T, float>) {
        if (in.flush) result = FlushSubnormal(result);
      }
      d[i] = Word<T>(result);
    });
  }

  static void RunPair(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    bool half = in.type == Type::kF16x2;
    ForLanes(mask, [&](int i) {
      uint32_t result = 0;
      for (int part = 0; part < 2; ++part) {
        auto bits = static_cast<uint16_t>(a[i] >> (16 * part));
        double value = Op::Apply(half ? FloatFromHalf(bits) : FloatFromBfloat(bits));
        uint32_t rounded = half ? HalfBits(value) : BfloatBits(value);
        result |= rounded << (16 * part);
      }
      d[i] = result;
    });
  }
};

template <typename Op>
bool Set(Instruction& in) {
  if (in.type == Type::kF16x2 || in.type == Type::kBf16x2) {
    in.run = Function<Op>::RunPair;
    return true;
  }
  return SetFloatingHandler<Function<Op>>(in);
}

}  // namespace

bool DecodeFunctions(const Statement& s, Instruction& in) {
  if (s.types.size() != 1 || !IsFloating(in.type)) return false;
  const std::string& op = s.opcode;
  bool approximate = s.Has("approx") || op == "tanh" || op == "ex2";
  bool exact = op == "rcp" || op == "sqrt";
  if (!approximate && !(exact && s.Has("rn"))) return false;
  if (!OnlyModifiers(s, {"approx", "rn", "ftz"}) || s.operands.size() != 2) return false;
  if (!SimpleOperands(s, in, 1)) return false;
  if (op == "ex2") return Set<Exponential>(in);
  if (op == "lg2") return Set<Logarithm>(in);
  if (op == "sin") return Set<Sine>(in);
  if (op == "cos") return Set<Cosine>(in);
  if (op == "tanh") return Set<HyperbolicTangent>(in);
  if (op == "rcp") return Set<Reciprocal>(in);
  if (op == "sqrt") return Set<SquareRoot>(in);
  if (op == "rsqrt") return Set<ReciprocalRoot>(in);
  return false;
}

}  // namespace ptx_emulator
