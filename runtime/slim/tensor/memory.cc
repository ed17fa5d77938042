#include "runtime/slim/tensor/memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace aoti::slim {
namespace {

// The free blocks of a size class form a linked list, whose links are in the blocks. Sizes are
// powers of two and three steps between two powers, so that at most a quarter of a block is unused.
constexpr std::size_t kSmallest = 64;
constexpr int kSteps = 4;
constexpr int kClasses = 42 * kSteps;

struct FreeBlock {
  FreeBlock* next;
};

// Held for a few instructions only: waiting costs less than sleeping.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.test_and_set(std::memory_order_acquire)) {
      while (held_.test(std::memory_order_relaxed)) {
      }
    }
  }
  void unlock() noexcept { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

struct alignas(64) SizeClass {
  SpinLock lock;
  FreeBlock* first = nullptr;
};

// Trivially destructible, so that tensors may be released while the process exits.
constinit SizeClass g_classes[kClasses];

struct ClassOf {
  int index;
  std::size_t bytes;
};

ClassOf FindClass(std::size_t bytes) {
  if (bytes <= kSmallest) return {0, kSmallest};
  const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  const std::size_t base = std::size_t{1} << power;
  const std::size_t step = base / kSteps;
  const std::size_t steps = (bytes - base + step - 1) / step;  // 1..kSteps
  return {(power - 6) * kSteps + static_cast<int>(steps), base + steps * step};
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
  const ClassOf found = FindClass(bytes);
  SizeClass& size_class = g_classes[found.index];
  size_class.lock.lock();
  FreeBlock* block = size_class.first;
  if (block != nullptr) size_class.first = block->next;
  size_class.lock.unlock();
  if (block != nullptr) return block;
  const std::size_t rounded = (found.bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* fresh = std::aligned_alloc(kAlignment, rounded);
  if (fresh == nullptr) {
    // The free blocks of other sizes may be enough for this allocation.
    TrimPool();
    fresh = std::aligned_alloc(kAlignment, rounded);
    if (fresh == nullptr) throw std::bad_alloc();
  }
  return fresh;
}

void Release(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  SizeClass& size_class = g_classes[FindClass(bytes).index];
  auto* freed = static_cast<FreeBlock*>(block);
  size_class.lock.lock();
  freed->next = size_class.first;
  size_class.first = freed;
  size_class.lock.unlock();
}

void TrimPool() noexcept {
  for (SizeClass& size_class : g_classes) {
    size_class.lock.lock();
    FreeBlock* block = size_class.first;
    size_class.first = nullptr;
    size_class.lock.unlock();
    while (block != nullptr) {
      FreeBlock* next = block->next;
      std::free(block);
      block = next;
    }
  }
}

#endif  // __SANITIZE_ADDRESS__

}  // namespace aoti::slim
