// atom and red.

#include <algorithm>
#include <cstring>

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/ops/scalar.h"
#include "tools/ptx_emulator/ops/spaces.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

enum Kind {
  kAdd,
  kMinimum,
  kMaximum,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareAndSwap,
  kIncrement,
  kDecrement
};

constexpr std::pair<std::string_view, Kind> kKinds[] = {
    {"add", kAdd},       {"min", kMinimum},   {"max", kMaximum},   {"and", kAnd},
    {"or", kOr},         {"xor", kXor},       {"exch", kExchange}, {"cas", kCompareAndSwap},
    {"inc", kIncrement}, {"dec", kDecrement},
};

uint64_t FloatingSum(Type type, uint64_t a, uint64_t b) {
  switch (type) {
    case Type::kF32:
      return Word<float>(Read<float>(a) + Read<float>(b));
    case Type::kF64:
      return Word<double>(Read<double>(a) + Read<double>(b));
    case Type::kF16:
      return HalfBits(AddToOdd(ToDouble(Read<Half>(a)), ToDouble(Read<Half>(b))));
    case Type::kBf16:
      return BfloatBits(AddToOdd(ToDouble(Read<Bfloat>(a)), ToDouble(Read<Bfloat>(b))));
    case Type::kF16x2:
      return FloatingSum(Type::kF16, a, b) | FloatingSum(Type::kF16, a >> 16, b >> 16) << 16;
    default:
      return FloatingSum(Type::kBf16, a, b) | FloatingSum(Type::kBf16, a >> 16, b >> 16) << 16;
  }
}

int64_t Signed(uint64_t value, Type type) {
  int unused = 64 - 8 * Bytes(type);
  return static_cast<int64_t>(value << unused) >> unused;
}

uint64_t Apply(const Instruction& in, uint64_t old, uint64_t b, uint64_t c) {
  switch (in.detail) {
    case kAdd:
      return IsFloating(in.type) ? FloatingSum(in.type, old, b) : old + b;
    case kMinimum:
      if (IsSigned(in.type)) return Signed(old, in.type) < Signed(b, in.type) ? old : b;
      return std::min(old, b);
    case kMaximum:
      if (IsSigned(in.type)) return Signed(old, in.type) > Signed(b, in.type) ? old : b;
      return std::max(old, b);
    case kAnd:
      return old & b;
    case kOr:
      return old | b;
    case kXor:
      return old ^ b;
    case kExchange:
      return b;
    case kCompareAndSwap:
      return old == b ? c : old;
    case kIncrement:
      return old >= b ? 0 : old + 1;
    default:
      return old == 0 || old > b ? b : old - 1;
  }
}

void Atomic(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* base = in.address < 0 ? nullptr : warp.Row(in.address);
  const uint64_t* b = warp.Row(in.source[0]);
  const uint64_t* c = in.source[1] < 0 ? b : warp.Row(in.source[1]);
  auto bytes = static_cast<uint32_t>(Bytes(in.type));
  uint64_t width = bytes == 8 ? ~0ull : (1ull << (8 * bytes)) - 1;
  ForLanes(mask, [&](int i) {
    uint64_t address = (base == nullptr ? 0 : base[i]) + static_cast<uint64_t>(in.offset);
    if (in.space == Space::kShared) address &= 0xFFFFFFFF;
    uint8_t* data = Resolve(warp, in, i, in.space, address, bytes, SharedMemory::Access::kAtomic);
    uint64_t old = 0;
    std::memcpy(&old, data, bytes);
    uint64_t value = Apply(in, old, b[i] & width, c[i] & width);
    std::memcpy(data, &value, bytes);
    if (in.destination >= 0) warp.Row(in.destination)[i] = old;
  });
}

bool IsLegal(const Instruction& in) {
  if (!IsFloating(in.type)) return Bytes(in.type) >= (in.detail == kCompareAndSwap ? 2 : 4);
  return in.detail == kAdd && in.type != Type::kTf32;
}

}  // namespace

bool DecodeAtomic(const Statement& s, Instruction& in) {
  if ((s.opcode != "atom" && s.opcode != "red") || s.types.size() != 1) return false;
  in.detail = -1;
  Statement rest = s;
  rest.modifiers.clear();
  for (const std::string& modifier : s.modifiers) {
    bool kind = false;
    for (const auto& [name, value] : kKinds) {
      if (modifier != name) continue;
      in.detail = value;
      kind = true;
    }
    if (!kind && modifier != "noftz") rest.modifiers.push_back(modifier);
  }
  if (in.detail < 0 || !IsLegal(in) || !OnlyMemoryModifiers(rest) || s.Has("v2") || s.Has("v4")) {
    return false;
  }
  size_t first = s.opcode == "atom" ? 1 : 0;
  size_t sources = in.detail == kCompareAndSwap ? 2 : 1;
  if (s.operands.size() < first + 1 + sources) return false;
  if (s.operands[first].kind != Operand::Kind::kAddress) return false;
  if (first == 1) in.destination = s.operands[0].row;
  in.space = SpaceOf(s);
  in.address = s.operands[first].row;
  in.offset = s.operands[first].offset;
  for (size_t i = 0; i < sources; ++i) {
    if (s.operands[first + 1 + i].kind != Operand::Kind::kRow) return false;
    in.source[i] = s.operands[first + 1 + i].row;
  }
  in.run = Atomic;
  return true;
}

}  // namespace ptx_emulator
