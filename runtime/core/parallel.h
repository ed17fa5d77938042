// Threads for kernels: those that Inductor wrote, and slim's operators.
//
// One pool of threads serves the whole process. A run of a model takes part of a budget of as many
// threads as the CPU has (see RunThreads), so that many callers don't oversubscribe the machine.

#ifndef AOTI_RUNTIME_CORE_PARALLEL_H_
#define AOTI_RUNTIME_CORE_PARALLEL_H_

#include <algorithm>
#include <cstdint>

namespace aoti::internal {

// How many threads Parallel() may use when this thread calls it: 1 within a parallel region.
int MaxThreads();

// Calls body(context, thread, threads) for each thread in 0..threads-1, on up to `threads` threads;
// the caller runs part 0. threads is at most `wanted` and MaxThreads(). Parts must not wait for
// each other: if CPUs are busy, one thread runs several parts one after the other. Returns when all
// parts have returned; then it throws the exception of the lowest part again, if there is one. All
// parts round and treat subnormal numbers as the caller does.
// Nested regions run on one thread. After a fork() the child has its own pool.
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

// As long as it exists, lets the calling thread use up to `wanted` threads (0: as many as the CPU
// has), less those that other callers hold.
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

// For tests: simulates this number of CPUs. No region may run during the call.
void SetCpusForTesting(int cpus);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PARALLEL_H_
