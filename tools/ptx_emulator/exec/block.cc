#include <algorithm>
#include <sstream>

#include "tools/ptx_emulator/exec/launch.h"

namespace ptx_emulator {

Block::Block(const Launch& launch)
    : launch_(launch), threads_(launch.block[0] * launch.block[1] * launch.block[2]) {
  warps_.resize((threads_ + kLanes - 1) / kLanes);
  const Kernel& kernel = *launch.kernel;
  for (size_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[i];
    warp.block = this;
    warp.kernel = &kernel;
    warp.index = static_cast<int>(i);
    warp.registers.resize(static_cast<size_t>(kernel.rows) * kLanes);
    for (const auto& [row, value] : kernel.constants) {
      std::fill_n(warp.Row(row), kLanes, value);
    }
    for (const auto& [row, name] : kernel.globals) {
      std::fill_n(warp.Row(row), kLanes, launch.global_addresses->at(name));
    }
  }
}

void Block::Start() {
  const Kernel& kernel = *launch_.kernel;
  shared_.Start(kernel.shared_bytes + launch_.dynamic_shared_bytes, static_cast<int>(warps_.size()),
                launch_.check_races);
  frame_ = launch_.parameters;
  block_start_ = instructions_;
  for (Warp& warp : warps_) {
    uint32_t lanes =
        std::min<uint32_t>(threads_ - static_cast<uint32_t>(warp.index) * kLanes, kLanes);
    warp.live = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    warp.fragments.assign(1, {0, warp.live, false});
    warp.barrier = -1;
    warp.local.assign(static_cast<size_t>(kernel.local_bytes) * kLanes, 0xFF);
    warp.committed.fill(0);
    warp.copies.clear();
    for (const auto& [row, special] : kernel.specials) FillSpecial(warp, row, special);
  }
}

void Block::FillSpecial(Warp& warp, int row, Special special) {
  uint64_t* words = warp.Row(row);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t thread = static_cast<uint32_t>(warp.index) * kLanes + lane;
    auto value = [&]() -> uint64_t {
      switch (special) {
        case Special::kTidX:
          return thread % launch_.block[0];
        case Special::kTidY:
          return thread / launch_.block[0] % launch_.block[1];
        case Special::kTidZ:
          return thread / launch_.block[0] / launch_.block[1];
        case Special::kNtidX:
        case Special::kNtidY:
        case Special::kNtidZ:
          return launch_.block[static_cast<int>(special) - static_cast<int>(Special::kNtidX)];
        case Special::kCtaidX:
        case Special::kCtaidY:
        case Special::kCtaidZ:
          return index_[static_cast<int>(special) - static_cast<int>(Special::kCtaidX)];
        case Special::kNctaidX:
        case Special::kNctaidY:
        case Special::kNctaidZ:
          return launch_.grid[static_cast<int>(special) - static_cast<int>(Special::kNctaidX)];
        case Special::kLaneId:
          return lane;
        case Special::kWarpId:
          return static_cast<uint64_t>(warp.index);
        case Special::kNwarpId:
          return warps_.size();
        case Special::kSmId:
          return 0;
        case Special::kNsmId:
          return 1;
        case Special::kLanemaskEq:
          return 1u << lane;
        case Special::kLanemaskLt:
          return (1u << lane) - 1;
        case Special::kLanemaskLe:
          return (2ull << lane) - 1;
        case Special::kLanemaskGt:
          return ~((2ull << lane) - 1) & kAllLanes;
        case Special::kLanemaskGe:
          return ~((1ull << lane) - 1) & kAllLanes;
        case Special::kClock:
          return instructions_;
        case Special::kDynamicSharedBytes:
          return launch_.dynamic_shared_bytes;
      }
      return 0;
    };
    words[lane] = value();
  }
}

void Block::Run(std::array<uint32_t, 3> index) {
  index_ = index;
  Start();
  for (;;) {
    for (Warp& warp : warps_) {
      if (warp.live != 0 && warp.barrier < 0) RunWarp(warp);
    }
    bool lives =
        std::any_of(warps_.begin(), warps_.end(), [](const Warp& warp) { return warp.live != 0; });
    if (!lives) return;
    if (ReleaseBarriers()) continue;
    for (Warp& warp : warps_) {
      if (warp.live == 0) continue;
      Explain(warp, *warp.barrier_instruction,
              Refusal(kLaunchFailed, -1,
                      "the barrier waits for ever: other threads of the block do not arrive"));
    }
  }
}

bool Block::ReleaseBarriers() {
  bool any = false;
  for (Warp& first : warps_) {
    if (first.live == 0 || first.barrier < 0) continue;
    uint32_t arrived = 0;
    uint32_t members = 0;
    bool others = false;
    for (Warp& warp : warps_) {
      if (warp.live != 0 && warp.barrier == first.barrier) {
        // The count is in whole warps.
        arrived += kLanes;
        members |= 1u << warp.index;
      } else if (warp.live != 0) {
        others = true;
      }
    }
    bool complete = first.barrier_threads == 0 ? !others : arrived >= first.barrier_threads;
    if (!complete) continue;
    shared_.Join(members);
    for (Warp& warp : warps_) {
      if (members >> warp.index & 1) warp.barrier = -1;
    }
    any = true;
  }
  return any;
}

void Block::Explain(const Warp& warp, const Instruction& instruction,
                    const Refusal& refusal) const {
  std::ostringstream text;
  text << "kernel " << launch_.kernel->name << ", line " << instruction.line << " ("
       << instruction.text << "), block " << index_[0] << "," << index_[1] << "," << index_[2]
       << ", ";
  if (refusal.lane < 0) {
    text << "warp " << warp.index;
  } else {
    uint32_t thread = static_cast<uint32_t>(warp.index * kLanes + refusal.lane);
    text << "thread " << thread % launch_.block[0] << ","
         << thread / launch_.block[0] % launch_.block[1] << ","
         << thread / launch_.block[0] / launch_.block[1];
  }
  text << ": " << refusal.what();
  throw Refusal(refusal.code, refusal.lane, text.str());
}

uint64_t RunGrid(const Launch& launch) {
  Block block(launch);
  for (uint32_t z = 0; z < launch.grid[2]; ++z) {
    for (uint32_t y = 0; y < launch.grid[1]; ++y) {
      for (uint32_t x = 0; x < launch.grid[0]; ++x) block.Run({x, y, z});
    }
  }
  return block.instructions();
}

}  // namespace ptx_emulator
