// What a call returns: the structure of forward()'s result, around the program's outputs.

#ifndef AOTI_RUNTIME_PYTHON_RESULTS_H_
#define AOTI_RUNTIME_PYTHON_RESULTS_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "aoti/tensor.h"
#include "runtime/python/module.h"

namespace aoti::python {

// An object of a namedtuple class: the same as type._make(fields), without running Python code.
pybind11::object MakeNamedTuple(const pybind11::object& type, const pybind11::tuple& fields);

// Adds a namedtuple class to the module.
pybind11::object DefineNamedTuple(pybind11::module_& module, const char* name,
                                  const std::vector<const char*>& fields);

// Makes results of the structure in a ModuleSpec.
class ResultMaker {
 public:
  // Adds the classes of the objects in the result to the module. `nodes` has static lifetime.
  ResultMaker(pybind11::module_& module, std::span<const ResultNode> nodes);

  pybind11::object Make(std::vector<Tensor> outputs, const RunOptions& options) const;

 private:
  // Makes the node at `next`, and moves `next` behind it and its items.
  pybind11::object Make(std::size_t& next, std::vector<Tensor>& outputs,
                        const RunOptions& options) const;
  void Define(pybind11::module_& module, std::size_t& next);

  std::span<const ResultNode> nodes_;
  std::map<std::string, pybind11::object> types_;
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_RESULTS_H_
