// Functions for tests and benchmarks that the C ABI lacks.

#include "runtime/slim/tests/support.h"

#include "runtime/core/parallel.h"

void aoti_slim_test_set_threads(int threads) { aoti::internal::SetCpusForTesting(threads); }
