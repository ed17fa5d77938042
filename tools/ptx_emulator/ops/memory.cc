// ld and st of all spaces, alone and as vectors.

#include <array>
#include <cstring>

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/ops/spaces.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

uint64_t Extend(uint64_t value, Type type) {
  if (!IsSigned(type)) return value;
  int unused = 64 - 8 * Bytes(type);
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

void Load(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* base = in.address < 0 ? nullptr : warp.Row(in.address);
  auto bytes = static_cast<uint32_t>(Bytes(in.type));
  auto count = static_cast<uint32_t>(in.vector.size());
  ForLanes(mask, [&](int i) {
    uint64_t address = (base == nullptr ? 0 : base[i]) + static_cast<uint64_t>(in.offset);
    if (in.space == Space::kShared) address &= 0xFFFFFFFF;
    const uint8_t* data =
        Resolve(warp, in, i, in.space, address, bytes * count, SharedMemory::Access::kRead);
    for (uint32_t k = 0; k < count; ++k) {
      uint64_t value = 0;
      std::memcpy(&value, data + k * bytes, bytes);
      if (in.vector[k] >= 0) warp.Row(in.vector[k])[i] = Extend(value, in.type);
    }
  });
}

void Store(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* base = in.address < 0 ? nullptr : warp.Row(in.address);
  auto bytes = static_cast<uint32_t>(Bytes(in.type));
  auto count = static_cast<uint32_t>(in.vector.size());
  ForLanes(mask, [&](int i) {
    uint64_t address = (base == nullptr ? 0 : base[i]) + static_cast<uint64_t>(in.offset);
    if (in.space == Space::kShared) address &= 0xFFFFFFFF;
    std::array<uint8_t, 64> contents;
    for (uint32_t k = 0; k < count; ++k) {
      std::memcpy(contents.data() + k * bytes, &warp.Row(in.vector[k])[i], bytes);
    }
    uint8_t* data = Resolve(warp, in, i, in.space, address, bytes * count,
                            SharedMemory::Access::kWrite, contents.data());
    std::memcpy(data, contents.data(), bytes * count);
  });
}

void Nothing(Warp&, const Instruction&, uint32_t) {}

}  // namespace

bool DecodeMemory(const Statement& s, Instruction& in) {
  if (s.opcode == "prefetch" || s.opcode == "prefetchu" || s.opcode == "discard" ||
      s.opcode == "applypriority") {
    in.run = Nothing;
    return true;
  }
  if ((s.opcode != "ld" && s.opcode != "ldu" && s.opcode != "st") || s.types.size() != 1) {
    return false;
  }
  bool load = s.opcode != "st";
  // A third operand is a cache's policy.
  if (s.operands.size() < 2 || s.operands.size() > 3) return false;
  const Operand& address = s.operands[load ? 1 : 0];
  const Operand& value = s.operands[load ? 0 : 1];
  if (address.kind != Operand::Kind::kAddress) return false;
  in.space = SpaceOf(s);
  in.address = address.row;
  in.offset = address.offset;
  size_t count = s.Has("v2") ? 2 : s.Has("v4") ? 4 : s.Has("v8") ? 8 : 1;
  if (value.kind == Operand::Kind::kVector) {
    in.vector = value.rows;
  } else if (value.kind == Operand::Kind::kRow) {
    in.vector = {value.row};
  }
  in.run = load ? Load : Store;
  return in.vector.size() == count && Bytes(in.type) <= 8 && OnlyMemoryModifiers(s);
}

}  // namespace ptx_emulator
