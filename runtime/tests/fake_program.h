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
// What the next instances do instead of telling their counts: throw std::bad_alloc.
extern std::atomic<bool> g_no_memory;
// Instances of programs that exist, and the most calls that ran at the same time.
extern std::atomic<int> g_instances;
extern std::atomic<int> g_most_running;
// Whether the adder's call that runs alone waits.
extern std::atomic<bool> g_hold;
// How long each call of the adder and of the counter takes.
extern std::atomic<int> g_microseconds;

// "counter": count += 1 in a weight, `total` (a state input) += 10 and `cache` (an input) += 100;
// returns count as float32[1], which is the weight itself, and total as float32[1].
const internal::ProgramSpec& CounterSpec();

// "echo": y = x, both bfloat16[count], x in a dtype that NumPy lacks.
const internal::ProgramSpec& EchoSpec();

// "twins": returns float32[batch, 2] tensors of which each is x + 1: `y` and `again` are one
// tensor, by one handle, as generated code returns a tensor twice; `last_rows`, float32[batch - 1,
// 2] with a handle of its own, is a part of its memory.
const internal::ProgramSpec& TwinsSpec();

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_
