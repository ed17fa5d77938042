// Owned tensors as Python objects.

#ifndef AOTI_RUNTIME_PYTHON_OUTPUTS_H_
#define AOTI_RUNTIME_PYTHON_OUTPUTS_H_

#include <pybind11/pybind11.h>

#include "aoti/model.h"
#include "aoti/tensor.h"

namespace aoti::python {

// Adds the class Tensor, for dtypes that NumPy lacks and for the memory of a GPU, to the module.
void DefineTensor(pybind11::module_& module);

// A NumPy array that owns the tensor, without a copy; a Tensor if NumPy lacks the dtype, or if it
// is on a GPU. `options`: those of the call that returned it.
pybind11::object ToPython(Tensor tensor, const RunOptions& options);

// Outputs in a tuple.
pybind11::tuple ToTuple(std::vector<Tensor> tensors, const RunOptions& options);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_OUTPUTS_H_
