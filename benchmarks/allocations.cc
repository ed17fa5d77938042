#include "benchmarks/allocations.h"

#include <atomic>
#include <cstddef>

namespace {

// Threads have counters of their own as far as there are some, so that counting costs nothing.
constexpr unsigned kCounters = 64;

struct alignas(64) Counter {
  std::atomic<long> count = 0;
};

constinit Counter g_counters[kCounters];
constinit std::atomic<unsigned> g_threads = 0;
constinit thread_local unsigned t_counter = kCounters;

void Count() noexcept {
  if (t_counter == kCounters) {
    t_counter = g_threads.fetch_add(1, std::memory_order_relaxed) % kCounters;
  }
  g_counters[t_counter].count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

namespace aoti::benchmark {

long CountedAllocations() {
  long total = 0;
  for (const Counter& counter : g_counters) total += counter.count.load(std::memory_order_relaxed);
  return total;
}

}  // namespace aoti::benchmark

// The linker (--wrap) makes these of the program's calls.
extern "C" {

void* __real_malloc(std::size_t size);
void* __real_calloc(std::size_t count, std::size_t size);
void* __real_realloc(void* memory, std::size_t size);
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
int __real_posix_memalign(void** memory, std::size_t alignment, std::size_t size);

void* __wrap_malloc(std::size_t size) {
  Count();
  return __real_malloc(size);
}

void* __wrap_calloc(std::size_t count, std::size_t size) {
  Count();
  return __real_calloc(count, size);
}

void* __wrap_realloc(void* memory, std::size_t size) {
  Count();
  return __real_realloc(memory, size);
}

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  Count();
  return __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  Count();
  return __real_posix_memalign(memory, alignment, size);
}

}  // extern "C"
