// cp.async: copies from global to shared memory that land when they are waited for.
//
// Nothing lands earlier, and until then the destination must not be touched: a wait that is
// missing is found, whatever a GPU's timing would hide.

#include <algorithm>
#include <cstring>

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

// source: the row of how many bytes are read, the rest being zeros; or -1. `detail`: the bytes.
void Copy(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* to = warp.Row(in.address);
  const uint64_t* from = warp.Row(in.source[0]);
  const uint64_t* read = in.source[1] < 0 ? nullptr : warp.Row(in.source[1]);
  ForLanes(mask, [&](int i) {
    PendingCopy copy;
    copy.lane = i;
    copy.group = warp.committed[i];
    copy.address = static_cast<uint32_t>(to[i] + static_cast<uint64_t>(in.offset));
    copy.bytes = static_cast<uint32_t>(in.detail);
    copy.line = in.line;
    uint32_t bytes = read == nullptr ? copy.bytes : static_cast<uint32_t>(read[i]);
    if (bytes > copy.bytes) {
      throw Refusal(kIllegalInstruction, i,
                    "cp.async reads " + std::to_string(bytes) + " bytes; expected at most " +
                        std::to_string(copy.bytes));
    }
    uint64_t address = from[i] + static_cast<uint64_t>(in.source[4]);
    ResolveShared(warp, in, i, copy.address, copy.bytes, SharedMemory::Access::kAsyncIssue);
    if (bytes > 0) {
      // The alignment is that of the whole copy.
      if (address % copy.bytes != 0) ResolveGlobal(warp, i, address, copy.bytes);
      for (uint32_t k = 0; k < bytes; ++k) {
        copy.contents[k] = *ResolveGlobal(warp, i, address + k, 1);
      }
    }
    warp.copies.push_back(copy);
  });
}

void Land(Warp& warp, const Instruction& in, const PendingCopy& copy) {
  Instruction issue = in;
  issue.line = copy.line;
  uint8_t* data = ResolveShared(warp, issue, copy.lane, copy.address, copy.bytes,
                                SharedMemory::Access::kAsyncLanding);
  std::memcpy(data, copy.contents.data(), copy.bytes);
}

void Commit(Warp& warp, const Instruction&, uint32_t mask) {
  ForLanes(mask, [&](int i) { ++warp.committed[i]; });
}

// All but the latest `detail` groups of each lane; -1 is wait_all, which commits first.
void Wait(Warp& warp, const Instruction& in, uint32_t mask) {
  if (in.detail < 0) Commit(warp, in, mask);
  uint32_t left = in.detail < 0 ? 0 : static_cast<uint32_t>(in.detail);
  auto stays = [&](const PendingCopy& copy) {
    return !(mask >> copy.lane & 1) || copy.group + left >= warp.committed[copy.lane];
  };
  for (const PendingCopy& copy : warp.copies) {
    if (!stays(copy)) Land(warp, in, copy);
  }
  std::erase_if(warp.copies, [&](const PendingCopy& copy) { return !stays(copy); });
}

}  // namespace

bool DecodeAsyncCopy(const Statement& s, Instruction& in) {
  if (s.opcode != "cp" || !s.Has("async")) return false;
  if (s.Has("commit_group")) {
    in.run = Commit;
    return s.modifiers.size() == 2;
  }
  if (s.Has("wait_all")) {
    in.detail = -1;
    in.run = Wait;
    return s.modifiers.size() == 2;
  }
  if (s.Has("wait_group")) {
    if (s.operands.size() != 1 || !s.operands[0].immediate) return false;
    in.detail = s.operands[0].offset;
    in.run = Wait;
    return s.modifiers.size() == 2;
  }
  for (const std::string& modifier : s.modifiers) {
    static constexpr std::string_view kKnown[] = {"async",  "ca",          "cg",
                                                  "shared", "shared::cta", "global"};
    bool known = modifier.starts_with("L2::");
    for (std::string_view name : kKnown) known = known || modifier == name;
    if (!known) return false;
  }
  if (s.operands.size() < 3 || s.operands[0].kind != Operand::Kind::kAddress ||
      s.operands[1].kind != Operand::Kind::kAddress || !s.operands[2].immediate ||
      s.operands[0].row < 0 || s.operands[1].row < 0) {
    return false;
  }
  in.address = s.operands[0].row;
  in.offset = s.operands[0].offset;
  in.source[0] = s.operands[1].row;
  in.source[4] = static_cast<int>(s.operands[1].offset);
  in.detail = s.operands[2].offset;
  bool has_policy = s.Has("L2::cache_hint");
  if (s.operands.size() == (has_policy ? 5u : 4u)) in.source[1] = s.operands[3].row;
  in.run = Copy;
  return in.detail == 16 || (s.Has("ca") && (in.detail == 4 || in.detail == 8));
}

}  // namespace ptx_emulator
