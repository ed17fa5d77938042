// What generated kernels need beyond torch's headers: loops over several threads, and checks that
// throw. Only generated kernels include this, once, and before any other header.
//
// Everything has internal linkage: kernels are compiled for their own instruction sets, and the
// linker must not choose one program's copy for another's.

#ifndef AOTI_RUNTIME_CORE_KERNEL_H_
#define AOTI_RUNTIME_CORE_KERNEL_H_

#include <c10/util/Exception.h>

#include "runtime/core/kernel_neon.h"

// torch's headers put the file that they were compiled from into their messages.
#undef TORCH_CHECK
#define TORCH_CHECK(condition, ...)                                          \
  if (!(condition)) [[unlikely]] {                                           \
    throw std::runtime_error(TORCH_CHECK_MSG(condition, "", ##__VA_ARGS__)); \
  }

#include <torch/csrc/inductor/cpp_prefix.h>

#undef AOTI_TORCH_CHECK
#define AOTI_TORCH_CHECK TORCH_CHECK

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "runtime/core/index_error.h"
#include "runtime/core/kernel_abi.h"

// Inductor's templates of whole operators (matrix products) call OpenMP. In kernels they run on one
// thread.
#define omp_get_thread_num() 0
#define omp_get_num_threads() 1
#define omp_get_max_threads() 1

namespace aoti::kernel {
namespace {

// The number of threads that pay off for a loop nest. steps: the number of steps of the loops that
// are split; nanoseconds: a rough estimate of the whole nest's duration.
inline int ThreadsFor(int64_t steps, double nanoseconds) {
  constexpr double kShare = 2000;  // large compared with the cost of a parallel region
  const double most = std::min(nanoseconds / kShare, static_cast<double>(steps));
  if (!(most >= 2)) return 1;
  return static_cast<int>(std::min(most, static_cast<double>(aoti_kernel_threads())));
}

// Calls body(thread, threads) on up to `wanted` threads. Every thread has its own copy of the body,
// so that captured values stay in registers.
template <typename Body>
inline void Parallel(int wanted, const Body& body) {
  if (wanted <= 1) {
    const Body copy = body;
    return copy(0, 1);
  }
  aoti_kernel_parallel(
      wanted,
      [](void* context, int thread, int threads) {
        const Body copy = *static_cast<const Body*>(context);
        copy(thread, threads);
      },
      const_cast<Body*>(&body));
}

// The number of iterations of a loop.
inline int64_t Steps(int64_t begin, int64_t end, int64_t step) {
  return end <= begin ? 0 : (end - begin + step - 1) / step;
}

// One thread's part of kDepth nested loops, which are split as if they were one loop: the range of
// steps, from the first one to the last one plus 1.
template <int kDepth>
struct Part {
  Part(const int64_t (&steps)[kDepth], int thread, int threads) {
    int64_t all = 1;
    for (const int64_t count : steps) all *= count;
    const auto boundary = [&](int64_t t) {
      return all / threads * t + all % threads * t / threads;
    };
    int64_t begin = boundary(thread);
    int64_t end = boundary(thread + 1) - 1;
    for (int d = kDepth - 1; d >= 0; --d) {
      const bool empty = end < begin;
      first[d] = empty ? 0 : begin % steps[d];
      last[d] = empty ? 0 : end % steps[d] + 1;
      if (empty) continue;
      begin /= steps[d];
      end /= steps[d];
    }
  }

  int64_t first[kDepth];
  int64_t last[kDepth];
};

// IndexError for the first of a vector's `count` elements that is out of range; `active(i)`:
// whether element i is used at all.
template <typename Vector, typename Active>
[[noreturn]] inline void VectorIndexError(const Vector& vector, int count, int64_t size,
                                          bool wrapped, const Active& active) {
  typename Vector::value_type indices[Vector::size()];
  vector.store(indices);
  for (int i = 0; i < count; ++i) {
    const int64_t index = static_cast<int64_t>(indices[i]);
    if (active(i) && (index < 0 || index >= size)) IndexError(index, size, wrapped);
  }
  throw std::runtime_error("an index is out of range");
}

}  // namespace
}  // namespace aoti::kernel

#endif  // AOTI_RUNTIME_CORE_KERNEL_H_
