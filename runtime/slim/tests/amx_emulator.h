// For tests of kernels that use AMX, on CPUs that lack it.

#ifndef AOTI_RUNTIME_SLIM_TESTS_AMX_EMULATOR_H_
#define AOTI_RUNTIME_SLIM_TESTS_AMX_EMULATOR_H_

#include <cstdint>

// From now on, the process runs AMX's instructions, slowly, where the CPU doesn't. The runtime uses
// them after aoti_slim_allow_amx(2).
extern "C" __attribute__((visibility("default"))) void aoti_slim_test_emulate_amx();

// The number of products of tiles that were emulated up to now.
extern "C" __attribute__((visibility("default"))) std::int64_t aoti_slim_test_emulated_products();

#endif  // AOTI_RUNTIME_SLIM_TESTS_AMX_EMULATOR_H_
