#include "runtime/slim/tensor/memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "runtime/slim/tensor/arena.h"
#include "runtime/slim/tensor/spin_lock.h"

namespace aoti::slim {
namespace {

// Larger blocks come from the arena. To split and join smaller ones would take long in comparison
// with what is done with them.
constexpr std::size_t kLargestSmall = 32 * 1024;
[[maybe_unused]] constinit Arena g_arena;

// Sizes of small blocks are powers of two and three steps between two powers, so that at most a
// quarter of a block is unused.
constexpr std::size_t kSmallest = 64;
constexpr int kSteps = 4;
constexpr int kClasses = 10 * kSteps;

// Each thread has one of these sets of free blocks, so that two threads of a call rarely exchange
// the cache lines of the pool, or blocks that are in the other one's cache.
constexpr int kShards = 8;
// How many free blocks a size class keeps in an array. The others form a linked list, whose links
// are in the blocks; to write them waits for the block's cache line.
constexpr int kFewBlocks = 6;

struct FreeBlock {
  FreeBlock* next;
};

// The free blocks of one size; one cache line.
class alignas(64) SizeClass {
 public:
  // A free block; null if there is none.
  void* Take() noexcept {
    const std::lock_guard lock(lock_);
    if (count_ > 0) return few_[--count_];
    FreeBlock* block = more_;
    if (block != nullptr) more_ = block->next;
    return block;
  }

  void Put(void* block) noexcept {
    const std::lock_guard lock(lock_);
    if (count_ < kFewBlocks) {
      few_[count_++] = block;
      return;
    }
    auto* freed = static_cast<FreeBlock*>(block);
    freed->next = more_;
    more_ = freed;
  }

 private:
  SpinLock lock_;
  unsigned char count_ = 0;
  void* few_[kFewBlocks] = {};
  FreeBlock* more_ = nullptr;
};

static_assert(sizeof(SizeClass) == 64);

// Trivially destructible, so that tensors may be released while the process exits.
constinit SizeClass g_classes[kShards][kClasses];

std::atomic<unsigned> g_threads{0};
constinit thread_local unsigned t_shard = kShards;  // none yet

inline unsigned Shard() noexcept {
  if (t_shard == kShards) [[unlikely]] {
    t_shard = g_threads.fetch_add(1, std::memory_order_relaxed) % kShards;
  }
  return t_shard;
}

// A free block of another thread's shard; null if there is none.
void* TakeFromOthers(unsigned own, int size_class) noexcept {
  for (unsigned i = 1; i < kShards; ++i) {
    if (void* block = g_classes[(own + i) % kShards][size_class].Take()) return block;
  }
  return nullptr;
}

struct ClassOf {
  int index;
  std::size_t bytes;
};

ClassOf FindClass(std::size_t bytes) noexcept {
  if (bytes <= kSmallest) return {0, kSmallest};
  const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  const std::size_t base = std::size_t{1} << power;
  const std::size_t step = base / kSteps;
  const std::size_t steps = (bytes - base + step - 1) / step;  // 1..kSteps
  return {(power - 6) * kSteps + static_cast<int>(steps), base + steps * step};
}

// A block of the pool, or a new one; null if the system has no memory.
[[maybe_unused]] void* TakeBlock(std::size_t bytes) noexcept {
  if (bytes > kLargestSmall) return g_arena.Take(bytes);
  const ClassOf found = FindClass(bytes);
  const unsigned shard = Shard();
  if (void* block = g_classes[shard][found.index].Take()) return block;
  if (void* block = TakeFromOthers(shard, found.index)) return block;
  const std::size_t rounded = (found.bytes + kAlignment - 1) / kAlignment * kAlignment;
  return std::aligned_alloc(kAlignment, rounded);
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)

// The pool is off under AddressSanitizer: it would hide reads of a free block or beyond the
// requested size.
void* Allocate(std::size_t bytes) {
  void* fresh = nullptr;
  if (posix_memalign(&fresh, kAlignment, std::max<std::size_t>(bytes, 1)) != 0) {
    throw std::bad_alloc();
  }
  return fresh;
}

void Release(void* block, std::size_t) noexcept { std::free(block); }

void TrimPool() noexcept {}

#else

void* Allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 46)) throw std::bad_alloc();
  void* block = TakeBlock(bytes);
  if (block == nullptr) {
    // The free blocks of other sizes may be enough for this one.
    TrimPool();
    block = TakeBlock(bytes);
    if (block == nullptr) throw std::bad_alloc();
  }
  return block;
}

void Release(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (bytes > kLargestSmall) {
    g_arena.Put(block, bytes);
    return;
  }
  g_classes[Shard()][FindClass(bytes).index].Put(block);
}

void TrimPool() noexcept {
  g_arena.Trim();
  for (auto& shard : g_classes) {
    for (SizeClass& size_class : shard) {
      while (void* block = size_class.Take()) std::free(block);
    }
  }
}

#endif  // __SANITIZE_ADDRESS__

}  // namespace aoti::slim
