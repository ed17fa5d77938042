// Callers that call one loaded model at the same time.

#ifndef BENCHMARKS_CALLERS_H_
#define BENCHMARKS_CALLERS_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace aoti::benchmark {

// What the callers did, all together.
struct Throughput {
  std::int64_t calls;
  double seconds;      // from the first call's begin to the last one's end
  double median_ns;    // of the time of a call
  double p99_ns;       // 99 of 100 calls took no longer
  double faults;       // pages per call that the kernel had to provide: memory that was new
  double waits;        // per call: how often a thread of the process gave up its CPU to wait
  double allocations;  // per call, by all threads; negative where they are not counted
};

// Calls each function again and again for so many seconds, at least once, on a thread of its own,
// after a call of each that doesn't count. A call that has begun is ended. Throws what a call
// throws, and std::invalid_argument if there is no function.
Throughput MeasureThroughput(const std::vector<std::function<void()>>& callers, double seconds);

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_CALLERS_H_
