// What a program takes and returns, as text that Python code can look at.

#ifndef AOTI_RUNTIME_PYTHON_SIGNATURE_H_
#define AOTI_RUNTIME_PYTHON_SIGNATURE_H_

#include <pybind11/pybind11.h>

#include <span>

#include "aoti/variants.h"
#include "runtime/python/module.h"

namespace aoti::python {

// Adds `inputs`, `outputs`, `dims` and `__provenance__` to the module of one program.
void DefineSignature(pybind11::module_& module, const MethodSpec& names, const ProgramSpec& spec);

// Adds the class Method to the module of a model with methods.
void DefineMethodClass(pybind11::module_& module);

// The same for a function with variants: its object has `variants` besides, an object for each; for
// the only function of a module, the module itself has the members. `methods` and `specs`: of all
// programs of the model.
void DefineFunction(pybind11::module_& module, const FunctionNames& names,
                    const FunctionSpec& function, std::span<const MethodSpec> methods,
                    std::span<const ProgramSpec* const> specs);

// Adds an object of this class, which has the same members, under the method's name.
void DefineMethod(pybind11::module_& module, const MethodSpec& names, const ProgramSpec& spec);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_SIGNATURE_H_
