// Threads for kernels: those that the code generator wrote, and the shim's own operators.
//
// One pool of threads serves the whole process. A run of a model takes part of a budget of as many
// threads as the CPU has (see RunThreads), so that many callers don't oversubscribe the machine.

#ifndef AOTI_RUNTIME_CORE_PARALLEL_H_
#define AOTI_RUNTIME_CORE_PARALLEL_H_

#include <algorithm>
#include <cstdint>

namespace aoti::internal {

// How many threads Parallel() may use now, on this thread: 1 within a parallel region.
int MaxThreads();

// Calls body(context, thread, threads) for thread = 0..threads-1, on up to as many threads; 0 is
// the caller's. threads is at most `wanted` and MaxThreads(). Calls must not wait for each other:
// where a CPU is busy otherwise, a thread makes several, one after the other. Returns when all
// have; of exceptions the one of the lowest thread number is thrown again then. Nested regions run
// on one thread. After fork() the child has a pool of its own.
void ParallelRegion(int wanted, void (*body)(void* context, int thread, int threads),
                    void* context);

template <typename Body>  // void(int thread, int threads)
void Parallel(int wanted, const Body& body) {
  ParallelRegion(
      wanted,
      [](void* context, int thread, int threads) {
        (*static_cast<const Body*>(context))(thread, threads);
      },
      const_cast<Body*>(&body));
}

// Splits begin..end into one range per thread, of at least `grain` each: body(first, last).
template <typename Body>
void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, const Body& body) {
  const std::int64_t size = end - begin;
  if (size <= 0) return;
  const std::int64_t parts = std::max<std::int64_t>(size / std::max<std::int64_t>(grain, 1), 1);
  if (parts == 1) return body(begin, end);
  const int wanted = static_cast<int>(std::min<std::int64_t>(parts, MaxThreads()));
  if (wanted <= 1) return body(begin, end);
  Parallel(wanted, [&](int thread, int threads) {
    const std::int64_t first = begin + size * thread / threads;
    const std::int64_t last = begin + size * (thread + 1) / threads;
    if (first < last) body(first, last);
  });
}

// Lets the calling thread use up to `wanted` threads (0: as many as the CPU has) as long as it
// lives, less what other callers hold.
class RunThreads {
 public:
  explicit RunThreads(int wanted);
  ~RunThreads();
  RunThreads(const RunThreads&) = delete;
  RunThreads& operator=(const RunThreads&) = delete;

 private:
  int taken_;
  int before_;
};

// For tests: as if the CPU had this many. No region may run meanwhile.
void SetCpusForTesting(int cpus);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PARALLEL_H_
