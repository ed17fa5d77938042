// Functions of the library that the tests load, in addition to those of the C ABI.

#ifndef AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_
#define AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_

// Makes operators use this many threads from now on, whatever the CPU has.
extern "C" __attribute__((visibility("default"))) void aoti_slim_test_set_threads(int threads);

#endif  // AOTI_RUNTIME_SLIM_TESTS_SUPPORT_H_
