// What tests and benchmarks set up that the C ABI has no function for.

#include "runtime/slim/tests/support.h"

#include "runtime/core/parallel.h"

void aoti_slim_test_set_threads(int threads) { aoti::internal::SetCpusForTesting(threads); }
