// What the generated Python modules have in common. A generated module is one call of InitModule().

#ifndef AOTI_RUNTIME_PYTHON_MODULE_H_
#define AOTI_RUNTIME_PYTHON_MODULE_H_

#include <span>

#include "aoti/program_spec.h"

struct _object;  // PyObject, without Python's headers: generated files then compile in no time

namespace aoti::python {

struct ModuleSpec {
  const char* name;
  const char* doc;
  // Names as Python has them (a keyword has a `_` appended), in the spec's order.
  std::span<const char* const> input_names;
  std::span<const char* const> output_names;
};

// The body of PyInit_<name>(). Both arguments must have static lifetime.
_object* InitModule(const ModuleSpec& module, const internal::ProgramSpec& spec);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_MODULE_H_
