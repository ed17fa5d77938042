// The seam between generated code and the runtime.
//
// A generated program is one C++ class that torch's code generator wrote, renamed so that any
// number of them link into one binary. The runtime sees it only through a table of functions, so
// that the runtime is compiled once and never includes generated code.

#ifndef AOTI_RUNTIME_CORE_PROGRAM_H_
#define AOTI_RUNTIME_CORE_PROGRAM_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include <cstddef>

namespace aoti::internal {

// How many tensors a program takes, returns and refers to, as the generated code itself states it.
struct ProgramCounts {
  std::size_t inputs;  // the caller's inputs, then the state
  std::size_t outputs;
  std::size_t constants;
};

// One generated program. Every function but `destroy` may throw std::exception.
//
// An instance runs one call at a time; different instances of one program are independent and may
// run at the same time, also when they share constants.
struct ProgramVTable {
  // Makes an instance that has no constants yet.
  void* (*create)();
  void (*destroy)(void* instance);
  ProgramCounts (*counts)(const void* instance);
  // Sets the constants, in the order of the manifest's `codegen.constants`. The array is read
  // during the call only; the handles are borrowed and must outlive the instance.
  void (*set_constants)(void* instance, const AtenTensorHandle* handles);
  // Runs the program. The input handles are stolen, also when it throws; the output handles are new
  // references that the caller owns, and are only written when it does not throw.
  void (*run)(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs);
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PROGRAM_H_
