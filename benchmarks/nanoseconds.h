// Times short calls, for benchmarks that are C++ programs of their own.

#ifndef BENCHMARKS_NANOSECONDS_H_
#define BENCHMARKS_NANOSECONDS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "aoti/error.h"

namespace benchmarks {

[[noreturn]] inline void Fail(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}

// Nanoseconds of a call: the least of the rounds' means, because whatever else the machine does
// only adds to it. `body(i)` makes a round's i-th call.
template <typename Body>
double Nanoseconds(int rounds, std::size_t calls_per_round, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < calls_per_round; ++i) body(i);
    const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
    best = std::min(best, spent.count() / static_cast<double>(calls_per_round));
  }
  return best;
}

}  // namespace benchmarks

#endif  // BENCHMARKS_NANOSECONDS_H_
