// mov, packing and unpacking of vectors, and cvta.

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

void Move(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  uint64_t flip = in.negated & 1;
  ForLanes(mask, [=](int i) { d[i] = a[i] ^ flip; });
}

// mov.b64 d, {a, b}: `detail` is the bits of a part.
void Pack(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  uint64_t part = (1ull << in.detail) - 1;
  ForLanes(mask, [&](int i) {
    uint64_t value = 0;
    for (size_t k = 0; k < in.vector.size(); ++k) {
      value |= (warp.Row(in.vector[k])[i] & part) << (static_cast<int64_t>(k) * in.detail);
    }
    d[i] = value;
  });
}

void Unpack(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* a = warp.Row(in.source[0]);
  uint64_t part = (1ull << in.detail) - 1;
  ForLanes(mask, [&](int i) {
    uint64_t value = a[i];
    for (size_t k = 0; k < in.vector.size(); ++k) {
      if (in.vector[k] < 0) continue;
      warp.Row(in.vector[k])[i] = value >> (static_cast<int64_t>(k) * in.detail) & part;
    }
  });
}

// cvta: `offset` is added.
void ChangeSpace(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  auto distance = static_cast<uint64_t>(in.offset);
  ForLanes(mask, [=](int i) { d[i] = a[i] + distance; });
}

// createpolicy: how a cache keeps lines is nothing that results depend on.
void Zero(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  ForLanes(mask, [=](int i) { d[i] = 0; });
}

}  // namespace

bool DecodeMove(const Statement& s, Instruction& in) {
  if (s.opcode == "createpolicy") {
    if (s.operands.empty() || s.operands[0].kind != Operand::Kind::kRow) return false;
    in.destination = s.operands[0].row;
    in.run = Zero;
    return true;
  }
  if (s.opcode == "cvta") {
    int64_t base = s.Has("shared") ? kSharedWindow : s.Has("local") ? kLocalWindow : 0;
    in.offset = s.Has("to") ? -base : base;
    in.run = ChangeSpace;
    return OnlyModifiers(s, {"to", "global", "shared", "local", "const", "param"}) &&
           SimpleOperands(s, in, 1);
  }
  if (s.opcode != "mov" || s.types.size() != 1 || !OnlyModifiers(s, {})) return false;
  if (s.operands.size() != 2) return false;
  const Operand& to = s.operands[0];
  const Operand& from = s.operands[1];
  if (to.kind == Operand::Kind::kRow && from.kind == Operand::Kind::kVector) {
    in.destination = to.row;
    in.vector = from.rows;
    in.run = Pack;
  } else if (to.kind == Operand::Kind::kVector && from.kind == Operand::Kind::kRow) {
    in.source[0] = from.row;
    in.vector = to.rows;
    in.run = Unpack;
  } else {
    in.run = Move;
    return SimpleOperands(s, in, 1);
  }
  in.detail = 8 * Bytes(in.type) / static_cast<int64_t>(in.vector.size());
  return in.detail < 64;
}

}  // namespace ptx_emulator
