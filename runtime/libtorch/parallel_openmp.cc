// The threads of generated kernels on libtorch: OpenMP's, which libtorch's own operators use too.

#include <omp.h>

#include <atomic>
#include <exception>

#include "runtime/core/kernel_abi.h"

int aoti_kernel_threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

void aoti_kernel_parallel(int wanted, void (*body)(void* context, int thread, int threads),
                          void* context) {
  std::exception_ptr first;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  // An exception that left the region on its thread would end the process.
#pragma omp parallel num_threads(wanted)
  {
    try {
      body(context, omp_get_thread_num(), omp_get_num_threads());
    } catch (...) {
      if (!failed.test_and_set()) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}
