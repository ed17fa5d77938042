// The threads of generated kernels, as functions that whoever links them provides: the runtime
// (parallel.cc), or the library that stock PyTorch loads, where they are OpenMP's.

#ifndef AOTI_RUNTIME_CORE_KERNEL_ABI_H_
#define AOTI_RUNTIME_CORE_KERNEL_ABI_H_

extern "C" {

// How many threads a parallel region may have now, on this thread.
int aoti_kernel_threads();

// Calls body(context, thread, threads) for thread = 0..threads-1, threads being at most `wanted`.
// An exception of a body is thrown again when all have returned.
void aoti_kernel_parallel(int wanted, void (*body)(void* context, int thread, int threads),
                          void* context);

}  // extern "C"

#endif  // AOTI_RUNTIME_CORE_KERNEL_ABI_H_
