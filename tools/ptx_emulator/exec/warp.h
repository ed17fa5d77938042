// A warp: 32 lanes that execute one instruction at a time.

#ifndef PTX_EMULATOR_EXEC_WARP_H_
#define PTX_EMULATOR_EXEC_WARP_H_

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tools/ptx_emulator/ptx/program.h"

namespace ptx_emulator {

class Block;
struct Allocation;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// Calls `body` for each lane of the mask. The loop over all lanes is one that a compiler
// vectorises.
template <typename Body>
inline void ForLanes(uint32_t mask, Body body) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) body(std::countr_zero(rest));
  }
}

// Lanes of a warp that stand at the same instruction.
struct Fragment {
  uint32_t at = 0;
  uint32_t mask = 0;
  bool waits = false;  // For other lanes of the warp.
};

// A copy by cp.async that has not landed.
struct PendingCopy {
  int lane = 0;
  uint32_t group = 0;
  uint32_t address = 0;
  uint32_t bytes = 0;
  uint32_t line = 0;
  std::array<uint8_t, 16> contents{};
};

class Warp {
 public:
  uint64_t* Row(int row) { return registers.data() + static_cast<size_t>(row) * kLanes; }

  Block* block = nullptr;
  const Kernel* kernel = nullptr;
  int index = 0;
  uint32_t live = 0;  // Lanes that have not exited.
  std::vector<Fragment> fragments;
  int barrier = -1;              // The barrier that all live lanes wait at, or -1.
  uint32_t barrier_threads = 0;  // The threads that it waits for; 0: all of the block.
  const Instruction* barrier_instruction = nullptr;
  std::vector<uint64_t> registers;
  std::vector<uint8_t> local;                // local_bytes of each lane.
  std::array<uint32_t, kLanes> committed{};  // Groups of copies that each lane has committed.
  std::vector<PendingCopy> copies;
  Allocation* last_allocation = nullptr;
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_WARP_H_
