// Errors as Python exceptions.

#ifndef AOTI_RUNTIME_PYTHON_ERRORS_H_
#define AOTI_RUNTIME_PYTHON_ERRORS_H_

#include <pybind11/pybind11.h>

#include <utility>

#include "aoti/result.h"

namespace aoti::python {

// The exception classes of one module.
struct ErrorTypes {
  pybind11::object error;        // Error(RuntimeError): has `code`
  pybind11::object input_error;  // InputError(Error, ValueError): 1xx, the arguments of a call

  // Makes the classes and adds them to the module. what: "model" or "kernel".
  static ErrorTypes Define(pybind11::module_& module, const char* what = "model");

  // cause: the exception that led to the error, or null.
  [[noreturn]] void Raise(const Error& error, const pybind11::object& cause = {}) const;

  template <typename T>
  T Unwrap(Result<T> result) const {
    if (!result.ok()) Raise(result.error());
    return *std::move(result);
  }
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_ERRORS_H_
