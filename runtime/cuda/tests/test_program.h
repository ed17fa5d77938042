// Programs for CUDA, written by hand as generated code would be.

#ifndef AOTI_RUNTIME_CUDA_TESTS_TEST_PROGRAM_H_
#define AOTI_RUNTIME_CUDA_TESTS_TEST_PROGRAM_H_

#include "aoti/program_spec.h"

namespace aoti::testing {

// x[batch, 4] -> y[batch, 4], x + row, where the weight `row` has 4 elements; and "transposed", a
// view of x with shape [4, batch].
const ProgramSpec& AdderSpec();

// x[4] -> total[4], a view of the state to which x is added. x is set to the total, too: the model
// writes to it.
const ProgramSpec& CounterSpec();

// Another method of the same model: it returns what was counted.
const ProgramSpec& ReaderSpec();

// x[4] -> y[4]: calls an operator that the slim runtime has only for the CPU.
const ProgramSpec& OnCpuSpec();

// x[4] -> y[4], x itself: its kernel uses the first element as the index of one of four.
const ProgramSpec& IndexerSpec();

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_CUDA_TESTS_TEST_PROGRAM_H_
