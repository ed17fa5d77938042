// Programs written by hand, in place of generated ones.

#ifndef AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_
#define AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_

#include <atomic>
#include <string>

#include "aoti/program_spec.h"

namespace aoti::testing {

// "adder": y = x + bias; inputs x float32[batch, 2]; outputs y float32[batch, 2] and
// x_transposed float32[2, batch], a view of the input; weight bias float32[2].
const internal::ProgramSpec& AdderSpec();
// What the next calls of the adder do instead: throw this.
extern std::string g_throw;
// Instances of programs that exist, and the most calls that ran at the same time.
extern std::atomic<int> g_instances;
extern std::atomic<int> g_most_running;
// How long each call of the adder and of the counter takes.
extern std::atomic<int> g_microseconds;

// "counter": count += 1 in a weight, `total` (a state input) += 10 and `cache` (an input) += 100;
// returns count as float32[1], which is the weight itself, and total as float32[1].
const internal::ProgramSpec& CounterSpec();

// "echo": y = x, both bfloat16[count], x in a dtype that NumPy lacks.
const internal::ProgramSpec& EchoSpec();

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_
