// Runs a kernel's grid, block after block.

#ifndef PTX_EMULATOR_EXEC_LAUNCH_H_
#define PTX_EMULATOR_EXEC_LAUNCH_H_

#include <array>
#include <cstdint>
#include <vector>

#include "tools/ptx_emulator/exec/memory_map.h"
#include "tools/ptx_emulator/exec/refusal.h"
#include "tools/ptx_emulator/exec/shared_memory.h"
#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ptx/program.h"

namespace ptx_emulator {

struct Launch {
  const Kernel* kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;  // frame_bytes of the kernel
  MemoryMap* memory = nullptr;
  const std::map<std::string, uint64_t>* global_addresses = nullptr;
  bool check_races = true;
  int device = 0;
  uint64_t most_instructions = ~0ull;  // Of one block; more is taken for an endless loop.
};

// A block of threads: its warps run in turns, each up to the next barrier.
class Block {
 public:
  explicit Block(const Launch& launch);

  // Throws Refusal, whose text names the kernel, the instruction, the block and the thread.
  void Run(std::array<uint32_t, 3> index);

  const Launch& launch() const { return launch_; }
  SharedMemory& shared() { return shared_; }
  std::vector<uint8_t>& frame() { return frame_; }
  uint64_t instructions() const { return instructions_; }
  std::array<uint32_t, 3> index() const { return index_; }

 private:
  void Start();
  void FillSpecial(Warp& warp, int row, Special special);
  // Until the warp waits at a barrier or has exited.
  void RunWarp(Warp& warp);
  // One instruction of the fragment; false if the warp's fragments must be chosen anew.
  bool Step(Warp& warp, size_t fragment);
  void Branch(Warp& warp, size_t fragment, const Instruction& instruction, uint32_t taken);
  void ArriveAtBarrier(Warp& warp, const Instruction& instruction);
  // Releases the warps of complete barriers; false if there are none.
  bool ReleaseBarriers();
  [[noreturn]] void Explain(const Warp& warp, const Instruction& instruction,
                            const Refusal& refusal) const;

  const Launch& launch_;
  uint32_t threads_;
  SharedMemory shared_;
  std::vector<uint8_t> frame_;
  std::vector<Warp> warps_;
  std::array<uint32_t, 3> index_{};
  uint64_t instructions_ = 0;
  uint64_t block_start_ = 0;
};

// Returns the number of instructions, counted per thread.
uint64_t RunGrid(const Launch& launch);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_LAUNCH_H_
