#ifndef AOTI_RUNTIME_TESTS_GENERATED_PROGRAM_SLIM_H_
#define AOTI_RUNTIME_TESTS_GENERATED_PROGRAM_SLIM_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

namespace aoti::testing {

// Deletes the tensor with the slim runtime's function.
void OwnOnSlim(AtenTensorHandle tensor);

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_GENERATED_PROGRAM_SLIM_H_
