// The part that all generated Python modules share. A generated module is one call of InitModule().

#ifndef AOTI_RUNTIME_PYTHON_MODULE_H_
#define AOTI_RUNTIME_PYTHON_MODULE_H_

#include <span>

#include "aoti/program_spec.h"

struct _object;  // PyObject; without Python's headers, generated files compile faster

namespace aoti::python {

struct ModuleSpec {
  const char* name;
  const char* doc;
  // Names of the inputs in Python (keywords have a `_` appended), in the spec's order.
  std::span<const char* const> input_names;
  std::span<const char* const> output_names;
};

// The body of PyInit_<name>(). Both arguments must have static lifetime.
_object* InitModule(const ModuleSpec& module, const ProgramSpec& spec);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_MODULE_H_
