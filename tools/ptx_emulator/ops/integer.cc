// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, neg, abs, with carries.

#include <algorithm>
#include <limits>

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/dispatch.h"
#include "tools/ptx_emulator/ops/scalar.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
template <typename T>
using Wider = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

struct Add {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Subtract {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct MultiplyLow {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct MultiplyHigh {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wider<T>>(a) * b >> (8 * sizeof(T)));
  }
};
// A division by zero gives all ones, as on a GPU.
struct Divide {
  template <typename T>
  static T Apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <typename T>
  static T Apply(T a, T b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Minimum {
  template <typename T>
  static T Apply(T a, T b) {
    return std::min(a, b);
  }
};
struct Maximum {
  template <typename T>
  static T Apply(T a, T b) {
    return std::max(a, b);
  }
};

template <typename Op>
struct Binary {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    ForLanes(mask,
             [=](int i) { d[i] = Word<T>(Op::template Apply<T>(Read<T>(a[i]), Read<T>(b[i]))); });
  }
};

// mad.lo and mad.hi, the product by Op.
template <typename Op>
struct MultiplyAdd {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = warp.Row(in.source[2]);
    ForLanes(mask, [=](int i) {
      T product = Op::template Apply<T>(Read<T>(a[i]), Read<T>(b[i]));
      d[i] = Word<T>(Add::Apply<T>(product, Read<T>(c[i])));
    });
  }
};

struct Wide {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    using Long = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = in.source[2] < 0 ? nullptr : warp.Row(in.source[2]);
    ForLanes(mask, [=](int i) {
      Long product = static_cast<Long>(Read<T>(a[i])) * static_cast<Long>(Read<T>(b[i]));
      d[i] = static_cast<uint64_t>(product) + (c == nullptr ? 0 : c[i]);
    });
  }
};

struct Negate {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    ForLanes(mask, [=](int i) { d[i] = Word<T>(static_cast<T>(0 - a[i])); });
  }
};

struct Absolute {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    ForLanes(mask, [=](int i) {
      T value = Read<T>(a[i]);
      d[i] = Word<T>(value < T{0} ? static_cast<T>(0 - a[i]) : value);
    });
  }
};

// add.sat and sub.sat of s32.
template <typename Op>
void SaturatedBinary(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  ForLanes(mask, [=](int i) {
    int64_t value = Op::template Apply<int64_t>(Read<int32_t>(a[i]), Read<int32_t>(b[i]));
    value = std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                std::numeric_limits<int32_t>::max());
    d[i] = static_cast<uint32_t>(value);
  });
}

// What .cc and addc, subc, madc need: sums with a carry, in `detail` the product's half or -1.
enum CarryKind { kAdd, kSubtract, kMadLow, kMadHigh };

struct Carry {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    using U = Unsigned<T>;
    uint64_t* d = warp.Row(in.destination);
    uint64_t* carry = warp.Row(warp.kernel->carry_row);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = in.source[2] < 0 ? nullptr : warp.Row(in.source[2]);
    ForLanes(mask, [&](int i) {
      uint64_t in_bit = in.carry_in ? carry[i] & 1 : 0;
      U x = static_cast<U>(a[i]);
      U y = static_cast<U>(b[i]);
      unsigned __int128 wide;
      if (in.detail == kSubtract) {
        wide = static_cast<unsigned __int128>(x) - y - in_bit;
      } else if (in.detail == kAdd) {
        wide = static_cast<unsigned __int128>(x) + y + in_bit;
      } else {
        T product = in.detail == kMadLow ? MultiplyLow::Apply<T>(Read<T>(a[i]), Read<T>(b[i]))
                                         : MultiplyHigh::Apply<T>(Read<T>(a[i]), Read<T>(b[i]));
        wide =
            static_cast<unsigned __int128>(static_cast<U>(product)) + static_cast<U>(c[i]) + in_bit;
      }
      d[i] = static_cast<U>(wide);
      if (in.carry_out) carry[i] = static_cast<uint64_t>(wide >> (8 * sizeof(T))) & 1;
    });
  }
};

bool DecodeCarry(const Statement& s, Instruction& in) {
  std::string op = s.opcode;
  in.carry_in = op.back() == 'c' && op != "abs";
  if (in.carry_in) op.pop_back();
  in.carry_out = s.Has("cc");
  if (op == "add" || op == "sub") {
    in.detail = op == "add" ? kAdd : kSubtract;
  } else if (op == "mad" && (s.Has("lo") || s.Has("hi"))) {
    in.detail = s.Has("lo") ? kMadLow : kMadHigh;
  } else {
    return false;
  }
  return OnlyModifiers(s, {"cc", "lo", "hi"}) && SimpleOperands(s, in, op == "mad" ? 3 : 2) &&
         SetIntegerHandler<Carry>(in);
}

}  // namespace

bool DecodeInteger(const Statement& s, Instruction& in) {
  if (s.types.size() != 1 || !IsInteger(in.type)) return false;
  const std::string& op = s.opcode;
  if (op == "addc" || op == "subc" || op == "madc" || s.Has("cc")) return DecodeCarry(s, in);
  if ((op == "add" || op == "sub") && s.Has("sat")) {
    if (in.type != Type::kS32 || !SimpleOperands(s, in, 2)) return false;
    in.run = op == "add" ? SaturatedBinary<Add> : SaturatedBinary<Subtract>;
    return OnlyModifiers(s, {"sat"});
  }
  if (op == "mul" || op == "mad") {
    if (!OnlyModifiers(s, {"lo", "hi", "wide"})) return false;
    if (!SimpleOperands(s, in, op == "mul" ? 2 : 3)) return false;
    if (s.Has("wide")) return Bytes(in.type) <= 4 && SetIntegerHandler<Wide>(in);
    if (op == "mul") {
      if (s.Has("lo")) return SetIntegerHandler<Binary<MultiplyLow>>(in);
      if (s.Has("hi")) return SetIntegerHandler<Binary<MultiplyHigh>>(in);
    } else {
      if (s.Has("lo")) return SetIntegerHandler<MultiplyAdd<MultiplyLow>>(in);
      if (s.Has("hi")) return SetIntegerHandler<MultiplyAdd<MultiplyHigh>>(in);
    }
    return false;
  }
  if (!OnlyModifiers(s, {})) return false;
  if (op == "neg" || op == "abs") {
    if (!SimpleOperands(s, in, 1)) return false;
    return op == "neg" ? SetIntegerHandler<Negate>(in) : SetIntegerHandler<Absolute>(in);
  }
  if (op != "add" && op != "sub" && op != "div" && op != "rem" && op != "min" && op != "max") {
    return false;
  }
  if (!SimpleOperands(s, in, 2)) return false;
  if (op == "add") return SetIntegerHandler<Binary<Add>>(in);
  if (op == "sub") return SetIntegerHandler<Binary<Subtract>>(in);
  if (op == "div") return SetIntegerHandler<Binary<Divide>>(in);
  if (op == "rem") return SetIntegerHandler<Binary<Remainder>>(in);
  if (op == "min") return SetIntegerHandler<Binary<Minimum>>(in);
  return SetIntegerHandler<Binary<Maximum>>(in);
}

}  // namespace ptx_emulator
