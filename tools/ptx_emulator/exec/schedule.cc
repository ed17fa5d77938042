// Which lanes of a warp execute next.
//
// The lanes that stand at the lowest instruction go first, so those of both sides of a branch
// meet again where the sides do.

#include <algorithm>

#include "tools/ptx_emulator/exec/launch.h"

namespace ptx_emulator {
namespace {

// Lanes at the same instruction become one fragment; the lowest comes first.
void Merge(std::vector<Fragment>& fragments) {
  std::sort(fragments.begin(), fragments.end(),
            [](const Fragment& a, const Fragment& b) { return a.at < b.at; });
  size_t kept = 0;
  for (size_t i = 0; i < fragments.size(); ++i) {
    if (fragments[i].mask == 0) continue;
    if (kept > 0 && fragments[kept - 1].at == fragments[i].at) {
      fragments[kept - 1].mask |= fragments[i].mask;
      fragments[kept - 1].waits = false;
    } else {
      fragments[kept++] = fragments[i];
    }
  }
  fragments.resize(kept);
}

}  // namespace

void Block::RunWarp(Warp& warp) {
  while (warp.live != 0 && warp.barrier < 0) {
    if (warp.fragments.size() > 1) Merge(warp.fragments);
    size_t chosen = 0;
    while (chosen < warp.fragments.size() && warp.fragments[chosen].waits) ++chosen;
    if (chosen == warp.fragments.size()) {
      const Instruction& instruction = warp.kernel->code[warp.fragments[0].at];
      Explain(warp, instruction,
              Refusal(kLaunchFailed, -1,
                      "the instruction waits for ever: not all lanes of the warp that it names "
                      "arrive"));
    }
    // The fragment runs until it reaches the next one, or its lanes part.
    uint32_t limit = chosen + 1 < warp.fragments.size() ? warp.fragments[chosen + 1].at : ~0u;
    if (chosen > 0) limit = 0;  // One that waits may be reached by a jump: look after each step.
    while (Step(warp, chosen) && warp.fragments[chosen].at < limit) {
    }
  }
}

bool Block::Step(Warp& warp, size_t index) {
  Fragment& fragment = warp.fragments[index];
  if (fragment.at >= warp.kernel->code.size()) {
    warp.live &= ~fragment.mask;
    fragment.mask = 0;
    return false;
  }
  const Instruction& instruction = warp.kernel->code[fragment.at];
  uint32_t mask = fragment.mask;
  if (instruction.guard >= 0) {
    const uint64_t* guard = warp.Row(instruction.guard);
    uint32_t set = 0;
    for (int lane = 0; lane < kLanes; ++lane) set |= static_cast<uint32_t>(guard[lane] & 1) << lane;
    mask &= instruction.guard_negated ? ~set : set;
  }
  instructions_ += static_cast<uint64_t>(std::popcount(fragment.mask));
  if (instruction.flow == Flow::kNext) {
    ++fragment.at;
    if (mask == 0) return true;
    try {
      instruction.run(warp, instruction, mask);
    } catch (const Refusal& refusal) {
      Explain(warp, instruction, refusal);
    }
    return true;
  }
  if (instructions_ - block_start_ > launch_.most_instructions) {
    Explain(warp, instruction,
            Refusal(702, -1,
                    "the block has executed " + std::to_string(launch_.most_instructions) +
                        " instructions (PTX_EMULATOR_MOST_INSTRUCTIONS): it seems to be in an "
                        "endless loop"));
  }
  switch (instruction.flow) {
    case Flow::kBranch:
      Branch(warp, index, instruction, mask);
      return false;
    case Flow::kExit:
      warp.live &= ~mask;
      fragment.mask &= ~mask;
      ++fragment.at;
      // Those who wait may wait for the lanes that have left.
      for (Fragment& other : warp.fragments) other.waits = false;
      return false;
    case Flow::kBarrier:
      if (mask == 0) {
        ++fragment.at;
        return true;
      }
      if (fragment.mask != warp.live || mask != warp.live) {
        fragment.waits = true;
        return false;
      }
      ++fragment.at;
      ArriveAtBarrier(warp, instruction);
      return false;
    case Flow::kCollective: {
      uint32_t members = instruction.source[4] < 0
                             ? kAllLanes
                             : static_cast<uint32_t>(warp.Row(
                                   instruction.source[4])[std::countr_zero(mask == 0 ? 1u : mask)]);
      if (mask != 0 && (members & warp.live & ~mask) != 0) {
        fragment.waits = true;
        return false;
      }
      ++fragment.at;
      if (mask == 0) return true;
      try {
        if ((mask & ~members) != 0) {
          throw Refusal(kIllegalInstruction, std::countr_zero(mask & ~members),
                        "the lane is not in the instruction's own member mask");
        }
        instruction.run(warp, instruction, mask);
      } catch (const Refusal& refusal) {
        Explain(warp, instruction, refusal);
      }
      return true;
    }
    case Flow::kNext:
      break;
  }
  return true;
}

void Block::Branch(Warp& warp, size_t index, const Instruction& instruction, uint32_t taken) {
  Fragment& fragment = warp.fragments[index];
  fragment.waits = false;
  if (taken == fragment.mask) {
    fragment.at = instruction.target;
    return;
  }
  ++fragment.at;
  if (taken == 0) return;
  fragment.mask &= ~taken;
  warp.fragments.push_back({instruction.target, taken, false});
}

void Block::ArriveAtBarrier(Warp& warp, const Instruction& instruction) {
  int lane = std::countr_zero(warp.live);
  warp.barrier = static_cast<int>(warp.Row(instruction.source[0])[lane] & 0xFF);
  warp.barrier_threads =
      instruction.source[1] < 0 ? 0 : static_cast<uint32_t>(warp.Row(instruction.source[1])[lane]);
  warp.barrier_instruction = &instruction;
}

}  // namespace ptx_emulator
