// Hand-written programs that replace generated ones.

#ifndef AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_
#define AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_

#include <atomic>
#include <string>

#include "aoti/program_spec.h"

namespace aoti::testing {

// "adder": y = x + bias; inputs x float32[batch, 2]; outputs y float32[batch, 2] and
// x_transposed float32[2, batch], a view of the input; weight bias float32[2].
const ProgramSpec& AdderSpec();
// If set, the next calls of the adder throw this.
extern std::string g_throw;
// If set, new instances throw std::bad_alloc instead of returning their counts.
extern std::atomic<bool> g_no_memory;
// The number of instances that exist, and the greatest number of calls that ran at the same time.
extern std::atomic<int> g_instances;
extern std::atomic<int> g_most_running;
// Whether a call that runs alone waits.
extern std::atomic<bool> g_hold;
// The duration of each call.
extern std::atomic<int> g_microseconds;

// "counter": the weights count += 1 and total += 10, and `cache` (an input) += 100; returns count
// and total as float32[1], which are the weights themselves.
const ProgramSpec& CounterSpec();

// "reader", a method of the same model: returns the weight `total` as float32[1]. Without inputs.
const ProgramSpec& ReaderSpec();

// "locator", a method of the same model: returns the address of the input x float32[1] as int64[1].
const ProgramSpec& LocatorSpec();

// "echo": y = x, both bfloat16[count], a dtype that NumPy lacks.
const ProgramSpec& EchoSpec();

// "twins": returns float32[batch, 2] tensors, each of which is x + 1. `y` and `again` are one
// tensor with one handle, as generated code returns a tensor twice. `last_rows`, float32[batch - 1,
// 2], has its own handle and is a part of the same memory.
const ProgramSpec& TwinsSpec();

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_FAKE_PROGRAM_H_
