#include "runtime/slim/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>

#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
// The least size of a region, so that most programs have one: a block lies in one region. Its pages
// take no memory before they are written.
constexpr std::size_t kRegion = 256 * kMiB;
constexpr std::size_t kHugePage = 2 * kMiB;
// What lies behind so much of a region is in huge pages, which need fewer entries of the TLB. Small
// models would only take more memory with them.
constexpr std::size_t kSmallPages = 8 * kMiB;
// Lies before the first block of a region, so that two regions have no neighbours.
constexpr std::size_t kGap = kAlignment;

std::size_t BlockSize(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

// Makes room for so many elements. Returns false if the system has no memory.
template <typename T>
bool MakeRoom(std::size_t wanted, T*& array, std::size_t& room) noexcept {
  if (wanted <= room) return true;
  const std::size_t more = std::max<std::size_t>(2 * wanted, 64);
  void* grown = std::realloc(array, more * sizeof(T));
  if (grown == nullptr) return false;
  array = static_cast<T*>(grown);
  room = more;
  return true;
}

}  // namespace

void* Arena::Take(std::size_t bytes) noexcept {
  const std::size_t size = BlockSize(bytes);
  const std::lock_guard lock(lock_);
  if (!MakeRoom(block_count_ + region_count_ + 2, free_, free_room_)) return nullptr;
  Range* range = FindFree(size);
  if (range == nullptr) {
    if (!AddRegion(size)) return nullptr;
    range = FindFree(size);
  }
  char* block = range->begin;
  range->begin += size;
  range->bytes -= size;
  if (range->bytes == 0) EraseFree(range);
  ++block_count_;
  return block;
}

void Arena::Put(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(lock_);
  --block_count_;
  InsertFree({static_cast<char*>(block), BlockSize(bytes)});
}

void Arena::Trim() noexcept {
  const std::lock_guard lock(lock_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < region_count_; ++i) {
    const Range region = regions_[i];
    Range* const end = free_ + free_count_;
    Range* const whole = std::find_if(free_, end, [&](const Range& range) {
      return range.begin == region.begin + kGap && range.bytes == region.bytes - kGap;
    });
    if (whole == end) {
      regions_[kept++] = region;
      continue;
    }
    EraseFree(whole);
    region_bytes_ -= region.bytes;
    std::free(region.begin);
  }
  region_count_ = kept;
}

Arena::Range* Arena::FindFree(std::size_t bytes) noexcept {
  Range* found = nullptr;
  for (Range* range = free_; range != free_ + free_count_; ++range) {
    if (range->bytes >= bytes && (found == nullptr || range->bytes < found->bytes)) found = range;
  }
  return found;
}

// Adds a range, joined with its neighbours.
void Arena::InsertFree(Range range) noexcept {
  Range* const end = free_ + free_count_;
  Range* const next = std::lower_bound(free_, end, range, [](const Range& a, const Range& b) {
    return std::less<const char*>()(a.begin, b.begin);
  });
  const bool joins_next = next != end && range.begin + range.bytes == next->begin;
  if (joins_next) range.bytes += next->bytes;
  if (next != free_ && next[-1].begin + next[-1].bytes == range.begin) {
    next[-1].bytes += range.bytes;
    if (joins_next) EraseFree(next);
    return;
  }
  if (!joins_next) {
    std::memmove(next + 1, next, static_cast<std::size_t>(end - next) * sizeof(Range));
    ++free_count_;
  }
  *next = range;
}

void Arena::EraseFree(Range* range) noexcept {
  --free_count_;
  Range* const end = free_ + free_count_;
  std::memmove(range, range + 1, static_cast<std::size_t>(end - range) * sizeof(Range));
}

// Adds a region that has room for a block, and for more if the system has as much.
bool Arena::AddRegion(std::size_t bytes) noexcept {
  if (!MakeRoom(region_count_ + 1, regions_, region_room_)) return false;
  const std::size_t least = (kGap + bytes + kHugePage - 1) / kHugePage * kHugePage;
  for (const std::size_t size : {std::max({least, kRegion, region_bytes_}), least}) {
    auto* begin = static_cast<char*>(std::aligned_alloc(kHugePage, size));
    if (begin == nullptr) continue;
#if defined(MADV_HUGEPAGE)
    if (size > kSmallPages) madvise(begin + kSmallPages, size - kSmallPages, MADV_HUGEPAGE);
#endif
    regions_[region_count_++] = {begin, size};
    region_bytes_ += size;
    InsertFree({begin + kGap, size - kGap});
    return true;
  }
  return false;
}

}  // namespace aoti::slim
