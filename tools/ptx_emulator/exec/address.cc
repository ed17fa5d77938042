#include "tools/ptx_emulator/exec/address.h"

#include <sstream>

namespace ptx_emulator {
namespace {

std::string Hex(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

std::string Access(uint32_t bytes, uint64_t address, const char* space) {
  return "access of " + std::to_string(bytes) + " bytes at " + Hex(address) + " of " + space +
         " memory";
}

void CheckAlignment(int lane, uint64_t address, uint32_t bytes, const char* space) {
  if ((address & (bytes - 1)) == 0) return;
  throw Refusal(kMisalignedAddress, lane,
                "misaligned " + Access(bytes, address, space) + "; expected a multiple of " +
                    std::to_string(bytes));
}

}  // namespace

uint8_t* ResolveGlobal(Warp& warp, int lane, uint64_t address, uint32_t bytes) {
  CheckAlignment(lane, address, bytes, "global");
  Allocation* allocation = warp.last_allocation;
  if (allocation == nullptr || !allocation->Contains(address, bytes)) {
    MemoryMap& memory = *warp.block->launch().memory;
    allocation = memory.Find(address, bytes);
    if (allocation == nullptr) {
      throw Refusal(
          kIllegalAddress, lane,
          "illegal " + Access(bytes, address, "global") + ": " + memory.Describe(address));
    }
    if (allocation->kind != Allocation::Kind::kHost &&
        allocation->device != warp.block->launch().device) {
      throw Refusal(kIllegalAddress, lane,
                    "illegal " + Access(bytes, address, "global") +
                        ": the memory is that of device " + std::to_string(allocation->device));
    }
    warp.last_allocation = allocation;
  }
  return allocation->data + (address - allocation->base);
}

uint8_t* ResolveShared(Warp& warp, const Instruction& instruction, int lane, uint64_t address,
                       uint32_t bytes, SharedMemory::Access access, const uint8_t* contents) {
  CheckAlignment(lane, address, bytes, "shared");
  SharedMemory& shared = warp.block->shared();
  if (address >= shared.size() || bytes > shared.size() - address) {
    throw Refusal(kIllegalAddress, lane,
                  "illegal " + Access(bytes, address, "shared") + ": the block has " +
                      std::to_string(shared.size()) + " bytes of it");
  }
  auto at = static_cast<uint32_t>(address);
  std::string problem = shared.Check(at, bytes, warp.index, instruction.line, access, contents);
  if (!problem.empty()) {
    throw Refusal(kLaunchFailed, lane, Access(bytes, address, "shared") + ": " + problem);
  }
  return shared.data() + at;
}

uint8_t* Resolve(Warp& warp, const Instruction& instruction, int lane, Space space,
                 uint64_t address, uint32_t bytes, SharedMemory::Access access,
                 const uint8_t* contents) {
  auto inside = [&](int64_t window) {
    return address - static_cast<uint64_t>(window) < static_cast<uint64_t>(kWindowBytes);
  };
  if (space == Space::kGeneric) {
    if (inside(kSharedWindow)) {
      space = Space::kShared;
      address -= static_cast<uint64_t>(kSharedWindow);
    } else if (inside(kLocalWindow)) {
      space = Space::kLocal;
      address -= static_cast<uint64_t>(kLocalWindow);
    } else {
      space = Space::kGlobal;
    }
  }
  switch (space) {
    case Space::kShared:
      return ResolveShared(warp, instruction, lane, address, bytes, access, contents);
    case Space::kLocal: {
      CheckAlignment(lane, address, bytes, "local");
      uint64_t size = warp.kernel->local_bytes;
      if (address >= size || bytes > size - address) {
        throw Refusal(kIllegalAddress, lane,
                      "illegal " + Access(bytes, address, "local") + ": a thread has " +
                          std::to_string(size) + " bytes of it");
      }
      return warp.local.data() + static_cast<uint64_t>(lane) * size + address;
    }
    case Space::kParam: {
      auto& frame = warp.block->frame();
      CheckAlignment(lane, address, bytes, "parameter");
      if (address >= frame.size() || bytes > frame.size() - address) {
        throw Refusal(kIllegalAddress, lane, "illegal " + Access(bytes, address, "parameter"));
      }
      return frame.data() + address;
    }
    default:
      return ResolveGlobal(warp, lane, address, bytes);
  }
}

}  // namespace ptx_emulator
