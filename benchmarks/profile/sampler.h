// Samples where the threads of this process are.

#ifndef BENCHMARKS_PROFILE_SAMPLER_H_
#define BENCHMARKS_PROFILE_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace aoti::benchmark {

// The program counters of all threads that exist now, taken about 1,000 times per second and thread
// while `body` runs, whether a thread works or waits. The threads must not end meanwhile. Throws
// std::system_error if the system refuses the timers.
std::vector<std::uintptr_t> Sample(const std::function<void()>& body);

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_PROFILE_SAMPLER_H_
