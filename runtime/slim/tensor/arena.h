// Memory for large blocks of many sizes: a free one can be split, and free neighbours are joined.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_ARENA_H_
#define AOTI_RUNTIME_SLIM_TENSOR_ARENA_H_

#include <cstddef>

#include "runtime/slim/tensor/spin_lock.h"

namespace aoti::slim {

// Blocks lie in regions, which come from the system, one after the other. A block comes from the
// smallest free range that has room for it, and of those from the one with the lowest address: so
// few pages are ever written, and what is written again is likely to be in a cache. Thread safe.
// Needs no constructor and no destructor: blocks may be released while the process exits.
class Arena {
 public:
  // A block that is aligned to kAlignment; null if the system has no memory.
  void* Take(std::size_t bytes) noexcept;
  // bytes: as it was for Take().
  void Put(void* block, std::size_t bytes) noexcept;
  // Returns the regions without blocks to the system.
  void Trim() noexcept;

 private:
  struct Range {
    char* begin;
    std::size_t bytes;
  };

  // Null if there is none.
  Range* FindFree(std::size_t bytes) noexcept;
  void InsertFree(Range range) noexcept;
  void EraseFree(Range* range) noexcept;
  bool AddRegion(std::size_t bytes) noexcept;

  SpinLock lock_;
  // The free ranges, by address. There is always room for one behind each block and each region's
  // beginning, so Put() allocates nothing.
  Range* free_ = nullptr;
  std::size_t free_count_ = 0, free_room_ = 0;
  std::size_t block_count_ = 0;
  Range* regions_ = nullptr;
  std::size_t region_count_ = 0, region_room_ = 0;
  std::size_t region_bytes_ = 0;  // of all regions
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_ARENA_H_
