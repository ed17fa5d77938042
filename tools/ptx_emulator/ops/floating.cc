// Floating-point arithmetic of f32, f64, f16 and bf16: add, sub, mul, fma, min, max, div, neg, abs.

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/dispatch.h"
#include "tools/ptx_emulator/ops/rounding.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

// Exact results for the types that are narrower than double, up to the last rounding.
struct Add {
  static double Wide(double a, double b, double) { return AddToOdd(a, b); }
  static float Direct(float a, float b, float) { return a + b; }
  static double Double(double a, double b, double) { return a + b; }
};
struct Subtract {
  static double Wide(double a, double b, double) { return AddToOdd(a, -b); }
  static float Direct(float a, float b, float) { return a - b; }
  static double Double(double a, double b, double) { return a - b; }
};
struct Multiply {
  static double Wide(double a, double b, double) { return a * b; }
  static float Direct(float a, float b, float) { return a * b; }
  static double Double(double a, double b, double) { return a * b; }
};
struct MultiplyAdd {
  static double Wide(double a, double b, double c) { return AddToOdd(a * b, c); }
  static float Direct(float a, float b, float c) { return static_cast<float>(Wide(a, b, c)); }
  static double Double(double a, double b, double c) { return std::fma(a, b, c); }
};
// Division of narrow types: a double's 53 bits round to 24 as the exact quotient does.
struct Divide {
  static double Wide(double a, double b, double) { return a / b; }
  static float Direct(float a, float b, float) { return a / b; }
  static double Double(double a, double b, double) { return a / b; }
};

template <typename T>
double Operand(uint64_t word, bool flush) {
  if constexpr (std::is_same_v<T, float>) {
    float value = Read<float>(word);
    return flush ? FlushSubnormal(value) : value;
  } else {
    return ToDouble(Read<T>(word));
  }
}

template <typename T>
uint64_t Result(double value, const Instruction& in) {
  T result = FromDouble<T>(value, in.rounding);
  if constexpr (std::is_same_v<T, float>) {
    if (in.flush) result = FlushSubnormal(result);
  }
  if (in.saturate) {
    double clamped = ToDouble(result);
    clamped = clamped > 1 ? 1 : clamped > 0 ? clamped : 0;
    result = FromDouble<T>(clamped, Rounding::kNearestEven);
  }
  return Word<T>(result);
}

template <typename Op>
struct Arithmetic {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = in.source[2] < 0 ? b : warp.Row(in.source[2]);
    if constexpr (std::is_same_v<T, double>) {
      ForLanes(mask, [=](int i) {
        d[i] = Word<T>(Op::Double(Read<T>(a[i]), Read<T>(b[i]), Read<T>(c[i])));
      });
      return;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (!in.flush && !in.saturate && in.rounding == Rounding::kNearestEven) {
        ForLanes(mask, [=](int i) {
          d[i] = Word<T>(Op::Direct(Read<T>(a[i]), Read<T>(b[i]), Read<T>(c[i])));
        });
        return;
      }
    }
    ForLanes(mask, [&](int i) {
      d[i] = Result<T>(Op::Wide(Operand<T>(a[i], in.flush), Operand<T>(b[i], in.flush),
                                Operand<T>(c[i], in.flush)),
                       in);
    });
  }
};

// `detail`: bit 0 is maximum, bit 1 is .NaN, bit 2 is .xorsign.abs.
struct Extremum {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    bool maximum = in.detail & 1;
    bool propagate = in.detail & 2;
    bool xor_sign = in.detail & 4;
    ForLanes(mask, [&](int i) {
      double x = Operand<T>(a[i], in.flush);
      double y = Operand<T>(b[i], in.flush);
      bool sign = std::signbit(x) != std::signbit(y);
      if (xor_sign) {
        x = std::fabs(x);
        y = std::fabs(y);
      }
      double result = x;
      if (x != x || y != y) {
        result = propagate ? std::nan("") : x != x ? y : x;
      } else {
        // -0 is less than +0.
        bool less = x < y || (x == y && std::signbit(x));
        result = less == maximum ? y : x;
      }
      if (xor_sign) result = std::copysign(result, sign ? -1.0 : 1.0);
      d[i] = Word<T>(FromDouble<T>(result, Rounding::kNearestEven));
    });
  }
};

// neg and abs change the sign bit, of NaNs too.
template <bool negate>
struct Sign {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    constexpr uint64_t kSign = 1ull << (8 * sizeof(T) - 1);
    bool flush = in.flush && sizeof(T) == 4;
    ForLanes(mask, [=](int i) {
      uint64_t value = a[i];
      if (flush) value = std::bit_cast<uint32_t>(FlushSubnormal(Read<float>(value)));
      d[i] = negate ? value ^ kSign : value & (kSign - 1);
    });
  }
};

// The sign of the first operand, the magnitude of the second.
struct CopySign {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    constexpr uint64_t kSign = 1ull << (8 * sizeof(T) - 1);
    ForLanes(mask, [=](int i) { d[i] = (a[i] & kSign) | (b[i] & (kSign - 1)); });
  }
};

}  // namespace

bool DecodeFloating(const Statement& s, Instruction& in) {
  if (s.types.size() != 1 || !IsFloating(in.type)) return false;
  const std::string& op = s.opcode;
  if (op == "neg" || op == "abs") {
    if (!OnlyModifiers(s, {"ftz"}) || !SimpleOperands(s, in, 1)) return false;
    return op == "neg" ? SetFloatingHandler<Sign<true>>(in) : SetFloatingHandler<Sign<false>>(in);
  }
  if (op == "copysign") {
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 2) && SetFloatingHandler<CopySign>(in);
  }
  if (op == "min" || op == "max") {
    in.detail = (op == "max" ? 1 : 0) | (s.Has("NaN") ? 2 : 0) | (s.Has("xorsign") ? 4 : 0);
    return OnlyModifiers(s, {"ftz", "NaN", "xorsign", "abs"}) && SimpleOperands(s, in, 2) &&
           SetFloatingHandler<Extremum>(in);
  }
  if (op == "div") {
    return OnlyModifiers(s, {"rn", "full", "approx", "ftz"}) && SimpleOperands(s, in, 2) &&
           Bytes(in.type) >= 4 && SetFloatingHandler<Arithmetic<Divide>>(in);
  }
  if (!OnlyModifiers(s, {"rn", "rz", "rm", "rp", "ftz", "sat", "noftz"})) return false;
  in.rounding = RoundingOf(s);
  if (in.type == Type::kF64 && in.rounding != Rounding::kNearestEven) return false;
  if (op == "fma" || op == "mad") {
    return SimpleOperands(s, in, 3) && SetFloatingHandler<Arithmetic<MultiplyAdd>>(in);
  }
  if (op != "add" && op != "sub" && op != "mul") return false;
  if (!SimpleOperands(s, in, 2)) return false;
  if (op == "add") return SetFloatingHandler<Arithmetic<Add>>(in);
  if (op == "sub") return SetFloatingHandler<Arithmetic<Subtract>>(in);
  return SetFloatingHandler<Arithmetic<Multiply>>(in);
}

}  // namespace ptx_emulator
