// Counts what a program allocates from the C library: operator new, malloc and the like.

#ifndef BENCHMARKS_ALLOCATIONS_H_
#define BENCHMARKS_ALLOCATIONS_H_

namespace aoti::benchmark {

// The allocations of the process so far, of all threads. A null pointer in programs that are not
// linked with allocations.cc and its --wrap flags: a shared library's allocations are not counted.
[[gnu::weak]] long CountedAllocations();

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_ALLOCATIONS_H_
