// Branches, exits, barriers, fences and traps.

#include <cstring>

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

void Nothing(Warp&, const Instruction&, uint32_t) {}

void Trap(Warp&, const Instruction&, uint32_t mask) {
  throw Refusal(kLaunchFailed, std::countr_zero(mask), "the kernel traps");
}

std::string TextAt(Warp& warp, int lane, uint64_t address) {
  std::string text;
  for (; text.size() < 1000; ++address) {
    auto c = static_cast<char>(*ResolveGlobal(warp, lane, address, 1));
    if (c == 0) break;
    text += c;
  }
  return text;
}

// __assertfail(message, file, line, function, size): the arguments are the last in the frame.
void AssertFail(Warp& warp, const Instruction&, uint32_t mask) {
  int lane = std::countr_zero(mask);
  const auto& frame = warp.block->frame();
  std::string text = "the assertion failed";
  if (frame.size() >= warp.kernel->frame_bytes && warp.kernel->frame_bytes >= 8) {
    uint64_t message = 0;
    size_t first = (warp.kernel->parameter_bytes + 15) / 16 * 16;
    std::memcpy(&message, frame.data() + first, 8);
    text += ": " + TextAt(warp, lane, message);
  }
  throw Refusal(kAssert, lane, text);
}

}  // namespace

bool DecodeFlow(const Statement& s, Instruction& in) {
  const std::string& op = s.opcode;
  if (op == "bra") {
    in.flow = Flow::kBranch;
    return true;
  }
  if (op == "ret" || op == "exit") {
    in.flow = Flow::kExit;
    return s.operands.empty();
  }
  if (op == "trap") {
    in.run = Trap;
    return true;
  }
  if (op == "membar" || op == "fence" || op == "nanosleep" || op == "pragma" ||
      op == "griddepcontrol") {
    in.run = Nothing;
    return true;
  }
  if (op == "call") {
    in.run = AssertFail;
    return s.operands.size() == 1 && s.operands[0].name == "__assertfail";
  }
  if (op != "bar" && op != "barrier") return false;
  if (s.Has("warp")) {
    in.flow = Flow::kCollective;
    in.run = Nothing;
    if (s.operands.size() != 1) return false;
    in.source[4] = s.operands[0].row;
    return true;
  }
  if (!s.Has("sync") || s.operands.empty() || s.operands.size() > 2) return false;
  in.flow = Flow::kBarrier;
  in.source[0] = s.operands[0].row;
  if (s.operands.size() == 2) in.source[1] = s.operands[1].row;
  return true;
}

}  // namespace ptx_emulator
