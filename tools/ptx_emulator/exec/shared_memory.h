// Shared memory of a block, which finds accesses that no barrier orders.
//
// Each warp has a clock per warp: what it knows of the others' progress. A barrier makes all
// that take part know what any of them knew, and starts a new period of each. Every byte
// remembers who wrote it last and who has read it since; an access by a warp that does not know
// the period of a conflicting one is a race.

#ifndef PTX_EMULATOR_EXEC_SHARED_MEMORY_H_
#define PTX_EMULATOR_EXEC_SHARED_MEMORY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ptx_emulator {

class SharedMemory {
 public:
  static constexpr int kMostWarps = 32;

  enum class Access { kRead, kWrite, kAtomic, kAsyncIssue, kAsyncLanding };

  // Forgets everything: for a new block.
  void Start(uint32_t bytes, int warps, bool check_races);

  uint8_t* data() { return data_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(data_.size()); }

  // Empty if the access is in order, else what is wrong. `line` is that of the instruction.
  // `address` is in range.
  // `contents` is what a write brings, or null: warps may write the same at the same time.
  std::string Check(uint32_t address, uint32_t bytes, int warp, uint32_t line, Access access,
                    const uint8_t* contents) {
    return check_ ? CheckBytes(address, bytes, warp, line, access, contents) : std::string();
  }

  // A barrier of the warps whose bits are set.
  void Join(uint32_t warps);

 private:
  // What a byte remembers of an access: the period, the warp and the line.
  struct Mark {
    uint32_t period = 0;  // 0: none
    uint32_t line : 24 = 0;
    uint32_t warp : 8 = 0;
  };
  struct Byte {
    Mark write;
    Mark read;
    bool atomic = false;
    bool pending = false;  // Destination of a copy that has not landed.
    bool written = false;
    bool many_readers = false;
  };

  std::string CheckBytes(uint32_t address, uint32_t bytes, int warp, uint32_t line, Access access,
                         const uint8_t* contents);
  bool Knows(int warp, const Mark& mark) const {
    return mark.period == 0 || mark.warp == static_cast<uint32_t>(warp) ||
           clocks_[warp][mark.warp] >= mark.period;
  }

  bool check_ = true;
  std::vector<uint8_t> data_;
  std::vector<Byte> bytes_;
  std::array<std::array<uint32_t, kMostWarps>, kMostWarps> clocks_{};
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_SHARED_MEMORY_H_
