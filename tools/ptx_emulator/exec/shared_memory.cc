#include "tools/ptx_emulator/exec/shared_memory.h"

#include <algorithm>

namespace ptx_emulator {

void SharedMemory::Start(uint32_t bytes, int warps, bool check_races) {
  check_ = check_races;
  data_.assign(bytes, 0xFF);
  bytes_.assign(check_ ? bytes : 0, Byte{});
  for (int i = 0; i < warps; ++i) {
    clocks_[i].fill(0);
    clocks_[i][i] = 1;
  }
}

std::string SharedMemory::CheckBytes(uint32_t address, uint32_t bytes, int warp, uint32_t line,
                                     Access access, const uint8_t* contents) {
  auto other = [&](const char* what, const Mark& mark) {
    return std::string(what) + " by warp " + std::to_string(mark.warp) + " at line " +
           std::to_string(mark.line) + ", with no barrier between";
  };
  Mark now;
  now.period = clocks_[warp][warp];
  now.line = line;
  now.warp = static_cast<uint32_t>(warp);
  for (uint32_t i = address; i < address + bytes; ++i) {
    Byte& byte = bytes_[i];
    if (byte.pending && access != Access::kAsyncLanding) {
      return "destination of the cp.async at line " + std::to_string(byte.write.line) +
             " by warp " + std::to_string(byte.write.warp) +
             ", which no cp.async.wait_group or wait_all has completed";
    }
    if (access == Access::kRead) {
      if (!byte.written) return "shared memory that nothing has written";
      if (!Knows(warp, byte.write)) return other("written", byte.write);
      bool same = byte.read.period == 0 || byte.read.warp == now.warp;
      byte.many_readers = !same && (byte.many_readers || !Knows(warp, byte.read));
      if (!byte.many_readers || same) byte.read = now;
      continue;
    }
    bool both_atomic = access == Access::kAtomic && byte.atomic;
    bool same = contents != nullptr && contents[i - address] == data_[i];
    if (!both_atomic && !same && !Knows(warp, byte.write)) return other("written", byte.write);
    if (access == Access::kAtomic && !byte.written) return "shared memory that nothing has written";
    if (!Knows(warp, byte.read)) return other("read", byte.read);
    byte.write = now;
    byte.written = true;
    byte.atomic = access == Access::kAtomic;
    byte.pending = access == Access::kAsyncIssue;
    byte.read = Mark{};
    byte.many_readers = false;
  }
  return {};
}

void SharedMemory::Join(uint32_t warps) {
  std::array<uint32_t, kMostWarps> latest{};
  for (int i = 0; i < kMostWarps; ++i) {
    if (!(warps >> i & 1)) continue;
    for (int j = 0; j < kMostWarps; ++j) latest[j] = std::max(latest[j], clocks_[i][j]);
  }
  for (int i = 0; i < kMostWarps; ++i) {
    if (!(warps >> i & 1)) continue;
    clocks_[i] = latest;
    ++clocks_[i][i];
  }
}

}  // namespace ptx_emulator
