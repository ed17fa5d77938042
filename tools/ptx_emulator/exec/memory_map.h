// Device memory: allocations at addresses that are never used twice.
//
// Addresses of device memory are not those of the host's memory behind it, so a host access
// through a device pointer faults, as it does with a GPU. Pinned host memory keeps its address.

#ifndef PTX_EMULATOR_EXEC_MEMORY_MAP_H_
#define PTX_EMULATOR_EXEC_MEMORY_MAP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ptx_emulator {

struct Allocation {
  enum class Kind { kDevice, kModule, kHost };

  uint64_t base = 0;
  uint64_t bytes = 0;
  uint8_t* data = nullptr;
  Kind kind = Kind::kDevice;
  bool live = true;
  int device = 0;
  std::unique_ptr<uint8_t[]> storage;

  bool Contains(uint64_t address, uint64_t size) const {
    return address - base < bytes && size <= bytes - (address - base);
  }
};

class MemoryMap {
 public:
  // Contents are 0xFF: a NaN in every floating-point type.
  uint64_t Allocate(uint64_t bytes, Allocation::Kind kind, int device);
  // Memory of the host that kernels may access at its own address.
  void Register(void* data, uint64_t bytes);
  // False if no live allocation starts at `base`.
  bool Free(uint64_t base);

  // The live allocation that has all of `size` bytes at `address`, or null.
  Allocation* Find(uint64_t address, uint64_t size);
  Allocation* FindBase(uint64_t base);

  // "16 bytes past the end of the allocation of 64 bytes at 0x..." for the messages.
  std::string Describe(uint64_t address) const;

  uint64_t live_bytes() const { return live_bytes_; }
  const std::map<uint64_t, Allocation>& allocations() const { return allocations_; }

 private:
  static constexpr uint64_t kFirst = 0x3000'0000'0000;
  static constexpr uint64_t kAlignment = 512;
  static constexpr uint64_t kGap = 4096;
  static constexpr size_t kMostFreed = 4096;

  uint64_t next_ = kFirst;
  uint64_t live_bytes_ = 0;
  size_t freed_ = 0;
  std::map<uint64_t, Allocation> allocations_;
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_MEMORY_MAP_H_
