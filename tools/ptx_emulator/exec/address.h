// From an address of the kernel to bytes of the host, with all checks.

#ifndef PTX_EMULATOR_EXEC_ADDRESS_H_
#define PTX_EMULATOR_EXEC_ADDRESS_H_

#include <cstdint>

#include "tools/ptx_emulator/exec/launch.h"

namespace ptx_emulator {

// Where shared and local memory are in the generic address space.
inline constexpr int64_t kSharedWindow = 0x2000'0000'0000;
inline constexpr int64_t kLocalWindow = 0x2100'0000'0000;
inline constexpr int64_t kWindowBytes = 0x0001'0000'0000;

// Bytes of one lane's access. Throws Refusal if the access is out of range, misaligned, of freed
// memory, or a race.
uint8_t* Resolve(Warp& warp, const Instruction& instruction, int lane, Space space,
                 uint64_t address, uint32_t bytes, SharedMemory::Access access,
                 const uint8_t* contents = nullptr);

uint8_t* ResolveGlobal(Warp& warp, int lane, uint64_t address, uint32_t bytes);
uint8_t* ResolveShared(Warp& warp, const Instruction& instruction, int lane, uint64_t address,
                       uint32_t bytes, SharedMemory::Access access,
                       const uint8_t* contents = nullptr);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_ADDRESS_H_
