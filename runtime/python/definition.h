// The definitions of the extension modules of a binary, each of which CPython keeps a pointer to.

#ifndef AOTI_RUNTIME_PYTHON_DEFINITION_H_
#define AOTI_RUNTIME_PYTHON_DEFINITION_H_

#include <pybind11/pybind11.h>

#include <functional>

namespace aoti::python {

// One generated module. The texts must have static storage.
struct ModuleDefinition {
  const char* name;
  const char* shown;   // starts errors
  const char* things;  // that it makes, for messages: "models"
  // Makes the module's members, when it is imported for the first time: classes can be made only
  // once. Later imports reuse them.
  std::function<void(pybind11::module_&)> define;
};

// What the module's init function returns. `key`: what the module is told apart by. Thread safe.
PyObject* InitDefinition(const void* key, ModuleDefinition definition);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_DEFINITION_H_
