// The threads of generated kernels, as functions that the program's linker input defines: the
// runtime (parallel.cc), or, in the library for stock PyTorch, OpenMP.

#ifndef AOTI_RUNTIME_CORE_KERNEL_ABI_H_
#define AOTI_RUNTIME_CORE_KERNEL_ABI_H_

extern "C" {

// How many threads a parallel region that this thread begins may have.
int aoti_kernel_threads();

// Calls body(context, thread, threads) for thread = 0..threads-1, where threads is at most
// `wanted`. An exception that a body throws is thrown again when all bodies have returned.
void aoti_kernel_parallel(int wanted, void (*body)(void* context, int thread, int threads),
                          void* context);

}  // extern "C"

#endif  // AOTI_RUNTIME_CORE_KERNEL_ABI_H_
