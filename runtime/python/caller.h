// Calls a program with Python's arguments, and returns what Python gets of its outputs.

#ifndef AOTI_RUNTIME_PYTHON_CALLER_H_
#define AOTI_RUNTIME_PYTHON_CALLER_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <vector>

#include "aoti/model.h"
#include "runtime/python/errors.h"
#include "runtime/python/inputs.h"
#include "runtime/python/module.h"
#include "runtime/python/results.h"

namespace aoti::python {

class Caller {
 public:
  // Adds the classes of the results to the module. The other arguments must have static lifetime.
  Caller(pybind11::module_& module, const MethodSpec& names, const ProgramSpec& spec,
         const ErrorTypes& errors);

  pybind11::object Call(const Model& model, const RunOptions& options, const pybind11::args& args,
                        const pybind11::kwargs& kwargs) const;

  // All outputs in a tuple, whatever structure the result has; numbers are arrays of rank 0.
  pybind11::tuple CallFlat(const Model& model, const RunOptions& options,
                           const pybind11::args& args, const pybind11::kwargs& kwargs) const;

  // What a call with these options returns, of the program's outputs.
  pybind11::object ToResult(std::vector<Tensor> tensors, const RunOptions& options) const;

  const char* variant() const { return names_.variant; }

 private:
  std::vector<Tensor> Run(const Model& model, const RunOptions& options, const pybind11::args& args,
                          const pybind11::kwargs& kwargs) const;

  TensorView Borrow(const pybind11::object& object, std::size_t i, const CallDevice& device,
                    BorrowedInput& borrowed) const;

  const MethodSpec& names_;
  const ProgramSpec& spec_;
  const ErrorTypes& errors_;
  pybind11::object outputs_type_;  // the namedtuple of the outputs, where a call returns that
  ResultMaker result_;             // where it does not
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_CALLER_H_
