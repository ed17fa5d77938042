// Calls a function with variants with Python's arguments.

#ifndef AOTI_RUNTIME_PYTHON_VARIANTS_H_
#define AOTI_RUNTIME_PYTHON_VARIANTS_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aoti/model.h"
#include "aoti/variants.h"
#include "runtime/python/caller.h"
#include "runtime/python/errors.h"
#include "runtime/python/inputs.h"
#include "runtime/python/module.h"

namespace aoti::python {

class VariantCaller {
 public:
  // `callers` and `programs`: of all programs of the model. The arguments must have static
  // lifetime.
  VariantCaller(const FunctionNames& names, const FunctionSpec& function,
                const std::vector<Caller>& callers, std::span<const ProgramSpec* const> programs,
                const pybind11::object& explanation, const ErrorTypes& errors);

  pybind11::object Call(std::span<const Model> models, const RunOptions& options,
                        const pybind11::args& args, const pybind11::kwargs& kwargs) const;

  // All outputs in a tuple.
  pybind11::tuple CallFlat(std::span<const Model> models, const RunOptions& options,
                           const pybind11::args& args, const pybind11::kwargs& kwargs) const;

  // An Explanation: which variant would run, and why those before it would not.
  pybind11::object Explain(const CallDevice& device, const pybind11::args& args,
                           const pybind11::kwargs& kwargs) const;

  const FunctionNames& names() const { return names_; }
  const FunctionSpec& function() const { return function_; }

 private:
  // What an argument keeps alive during a call.
  struct Borrowed {
    BorrowedInput input;
    std::string text;
  };
  struct Facts {
    bool takes_tensor = false;
    bool mutated = false;
  };

  VariantOutputs Run(std::span<const Model> models, const RunOptions& options,
                     const pybind11::args& args, const pybind11::kwargs& kwargs) const;

  // Calls `function` with the arguments of a call that works on `device`.
  template <typename Function>
  auto WithArguments(const CallDevice& device, const pybind11::args& args,
                     const pybind11::kwargs& kwargs, const Function& function) const;
  Argument ToArgument(const pybind11::object& object, std::size_t i, const CallDevice& device,
                      Borrowed& borrowed) const;

  const FunctionNames& names_;
  const FunctionSpec& function_;
  const std::vector<Caller>& callers_;
  const std::span<const ProgramSpec* const> programs_;
  const pybind11::object explanation_;  // the namedtuple
  const ErrorTypes& errors_;
  std::vector<Facts> facts_;  // of each argument
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_VARIANTS_H_
