// Bit operations: logic, shifts, fields, counts, permutations.

#include <algorithm>

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/dispatch.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

struct And {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a & b; }
};
struct Or {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a | b; }
};
struct Xor {
  static uint64_t Apply(uint64_t a, uint64_t b) { return a ^ b; }
};

// For every width: what lies beyond it is not looked at.
template <typename Op>
void Logic(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  uint64_t flip_a = in.negated & 1;
  uint64_t flip_b = in.negated >> 1 & 1;
  ForLanes(mask, [=](int i) { d[i] = Op::Apply(a[i] ^ flip_a, b[i] ^ flip_b); });
}

void Not(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  ForLanes(mask, [=](int i) { d[i] = ~a[i]; });
}

void LogicNot(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  ForLanes(mask, [=](int i) { d[i] = (a[i] & 0xFFFFFFFF) == 0; });
}

struct ShiftLeft {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    ForLanes(mask, [=](int i) {
      auto count = static_cast<uint32_t>(b[i]);
      d[i] = count < 8 * sizeof(T) ? static_cast<T>(static_cast<uint64_t>(a[i]) << count) : 0;
    });
  }
};

// The sign fills in for signed types.
struct ShiftRight {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    constexpr uint32_t kBits = 8 * sizeof(T);
    ForLanes(mask, [=](int i) {
      auto count = static_cast<uint32_t>(b[i]);
      T value = Read<T>(a[i]);
      if constexpr (std::is_signed_v<T>) {
        d[i] = Word<T>(static_cast<T>(value >> std::min(count, kBits - 1)));
      } else {
        d[i] = count < kBits ? Word<T>(static_cast<T>(value >> count)) : 0;
      }
    });
  }
};

// shf.l and shf.r, .wrap or .clamp: bit 0 of `detail` is right, bit 1 is clamp.
void FunnelShift(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  const uint64_t* c = warp.Row(in.source[2]);
  bool right = in.detail & 1;
  bool clamp = in.detail & 2;
  ForLanes(mask, [=](int i) {
    uint64_t value = (a[i] & 0xFFFFFFFF) | b[i] << 32;
    auto count = static_cast<uint32_t>(c[i]);
    count = clamp ? std::min(count, 32u) : count & 31;
    d[i] = static_cast<uint32_t>(right ? value >> count : value >> (32 - count));
  });
}

struct ExtractField {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = warp.Row(in.source[2]);
    constexpr uint32_t kBits = 8 * sizeof(T);
    ForLanes(mask, [=](int i) {
      uint32_t position = b[i] & 0xFF;
      uint32_t length = c[i] & 0xFF;
      T value = Read<T>(a[i]);
      uint64_t field = 0;
      bool sign = false;
      if (length > 0) {
        auto bits = static_cast<std::make_unsigned_t<T>>(value);
        field = position < kBits ? static_cast<uint64_t>(bits) >> position : 0;
        sign = std::is_signed_v<T> && (bits >> std::min(position + length - 1, kBits - 1) & 1);
        if (length < 64) field &= (1ull << length) - 1;
        // Beyond the number's end, and beyond the field's, there are copies of the sign.
        uint32_t known = position < kBits ? std::min(length, kBits - position) : 0;
        if (sign && known < 64) field |= ~0ull << known;
      }
      d[i] = static_cast<std::make_unsigned_t<T>>(field);
    });
  }
};

struct InsertField {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = warp.Row(in.source[2]);
    const uint64_t* e = warp.Row(in.source[3]);
    constexpr uint32_t kBits = 8 * sizeof(T);
    ForLanes(mask, [=](int i) {
      uint32_t position = c[i] & 0xFF;
      uint32_t length = e[i] & 0xFF;
      uint64_t field = length >= 64 ? ~0ull : (1ull << length) - 1;
      field = position < kBits ? field << position : 0;
      uint64_t value = position < kBits ? a[i] << position : 0;
      d[i] = static_cast<T>((b[i] & ~field) | (value & field));
    });
  }
};

void Permute(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  const uint64_t* c = warp.Row(in.source[2]);
  ForLanes(mask, [=](int i) {
    uint64_t value = (a[i] & 0xFFFFFFFF) | b[i] << 32;
    uint32_t result = 0;
    for (int byte = 0; byte < 4; ++byte) {
      uint64_t selector = c[i] >> (4 * byte) & 15;
      uint32_t part = value >> (8 * (selector & 7)) & 0xFF;
      if (selector & 8) part = part & 0x80 ? 0xFF : 0;
      result |= part << (8 * byte);
    }
    d[i] = result;
  });
}

void LogicTable(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  const uint64_t* c = warp.Row(in.source[2]);
  int64_t table = in.detail;
  ForLanes(mask, [=](int i) {
    uint64_t result = 0;
    for (int k = 0; k < 8; ++k) {
      if (!(table >> k & 1)) continue;
      result |= (k & 4 ? a[i] : ~a[i]) & (k & 2 ? b[i] : ~b[i]) & (k & 1 ? c[i] : ~c[i]);
    }
    d[i] = static_cast<uint32_t>(result);
  });
}

enum CountKind { kPopulation, kLeadingZeros, kReverse, kHighest };

struct Count {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t* d = warp.Row(in.destination);
    const uint64_t* a = warp.Row(in.source[0]);
    ForLanes(mask, [&](int i) {
      T value = static_cast<T>(a[i]);
      switch (in.detail) {
        case kPopulation:
          d[i] = static_cast<uint64_t>(std::popcount(value));
          break;
        case kLeadingZeros:
          d[i] = static_cast<uint64_t>(std::countl_zero(value));
          break;
        case kReverse: {
          T result = 0;
          for (size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
            result = static_cast<T>(result << 1 | (value >> bit & 1));
          }
          d[i] = result;
          break;
        }
        case kHighest: {
          if (IsSigned(in.type) && value >> (8 * sizeof(T) - 1)) value = static_cast<T>(~value);
          d[i] =
              static_cast<uint32_t>(static_cast<int>(8 * sizeof(T)) - 1 - std::countl_zero(value));
          break;
        }
      }
    });
  }
};

}  // namespace

bool DecodeBits(const Statement& s, Instruction& in) {
  const std::string& op = s.opcode;
  if (s.types.size() != 1) return false;
  if (op == "and" || op == "or" || op == "xor") {
    in.run = op == "and" ? Logic<And> : op == "or" ? Logic<Or> : Logic<Xor>;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 2);
  }
  if (op == "not") {
    in.run = Not;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 1);
  }
  if (op == "cnot" && in.type == Type::kB32) {
    in.run = LogicNot;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 1);
  }
  if (op == "shl") {
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 2) && SetBitsHandler<ShiftLeft>(in);
  }
  if (op == "shr") {
    if (!OnlyModifiers(s, {}) || !SimpleOperands(s, in, 2)) return false;
    return SetIntegerHandler<ShiftRight>(in) || SetBitsHandler<ShiftRight>(in);
  }
  if (op == "shf") {
    in.detail = (s.Has("r") ? 1 : 0) | (s.Has("clamp") ? 2 : 0);
    in.run = FunnelShift;
    return OnlyModifiers(s, {"l", "r", "wrap", "clamp"}) && in.type == Type::kB32 &&
           SimpleOperands(s, in, 3);
  }
  if (op == "bfe") {
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 3) && SetIntegerHandler<ExtractField>(in);
  }
  if (op == "bfi") {
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 4) && SetBitsHandler<InsertField>(in);
  }
  if (op == "prmt") {
    in.run = Permute;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 3);
  }
  if (op == "lop3") {
    if (s.operands.size() != 5 || !s.operands[4].immediate) return false;
    in.detail = s.operands[4].offset;
    in.run = LogicTable;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 4);
  }
  if (op == "popc" || op == "clz" || op == "brev" || op == "bfind") {
    in.detail = op == "popc"   ? kPopulation
                : op == "clz"  ? kLeadingZeros
                : op == "brev" ? kReverse
                               : kHighest;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 1) && Bytes(in.type) >= 4 &&
           SetBitsHandler<Count>(in);
  }
  return false;
}

}  // namespace ptx_emulator
