// Functions of the library that the tests load, beyond those of the C ABI.

#ifndef AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_
#define AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include <cstdint>

extern "C" {

// Operators use this many threads from now on, whatever the CPU has.
void aoti_slim_test_set_threads(int threads);

// A constant of which there is only the packed copy. The memory is borrowed.
AtenTensorHandle aoti_slim_test_packed_tensor(const char* kind, const void* packed,
                                              int64_t packed_bytes, int32_t dtype, int64_t rank,
                                              const int64_t* sizes, const int64_t* strides);
void aoti_slim_test_delete_packed_tensor(AtenTensorHandle tensor);

}  // extern "C"

#endif  // AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_
