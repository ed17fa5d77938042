// The errors of arguments that can't be borrowed.

#ifndef AOTI_RUNTIME_PYTHON_ARGUMENTS_H_
#define AOTI_RUNTIME_PYTHON_ARGUMENTS_H_

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "runtime/core/text.h"
#include "runtime/python/errors.h"
#include "runtime/python/inputs.h"
#include "runtime/python/text.h"

namespace aoti::python {

// What an error is about.
struct ArgumentPlace {
  const char* shown;  // the program or function
  const char* input;

  [[noreturn]] void Refuse(const ErrorTypes& errors, const Error& error,
                           const pybind11::object& cause = {}) const {
    errors.Raise(
        Error(error.code(), internal::StrCat(shown, ": input \"", input, "\": ", error.message())),
        cause);
  }
};

// Returns what `borrow` does, which fills `borrowed` from `object`; raises the errors.
template <typename Function>
TensorView BorrowArgument(const ErrorTypes& errors, const ArgumentPlace& place, bool mutated,
                          const pybind11::object& object, const BorrowedInput& borrowed,
                          const Function& borrow) {
  std::optional<Result<TensorView>> view;
  try {
    view.emplace(borrow());
  } catch (pybind11::error_already_set& error) {
    // Exceptions that are not about the input are passed on: KeyboardInterrupt, SystemExit,
    // MemoryError.
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    const std::string message =
        internal::StrCat(TypeName(object), ": ", borrowed.Doing(), " raised ", Describe(error));
    place.Refuse(errors, {ErrorCode::kInvalidArgument, message}, error.value());
  }
  if (!view->ok()) place.Refuse(errors, view->error());
  if (borrowed.IsCopy() && mutated) {
    place.Refuse(errors, {ErrorCode::kReadOnly,
                          internal::StrCat(
                              TypeName(object),
                              ".__dlpack__() exports a copy, but the model writes to the input")});
  }
  return **view;
}

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_ARGUMENTS_H_
