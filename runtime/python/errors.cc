#include "runtime/python/errors.h"

#include <string>

#include "runtime/core/text.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

py::object DefineClass(py::module_& module, const char* name, const py::tuple& bases,
                       const std::string& doc) {
  py::dict members;
  members["__doc__"] = doc;
  members["__module__"] = module.attr("__name__");
  py::object type = py::module_::import("builtins").attr("type")(name, bases, members);
  module.attr(name) = type;
  return type;
}

}  // namespace

ErrorTypes ErrorTypes::Define(py::module_& module, const char* what) {
  const auto builtin = [](PyObject* type) { return py::reinterpret_borrow<py::object>(type); };
  ErrorTypes types;
  types.error =
      DefineClass(module, "Error", py::make_tuple(builtin(PyExc_RuntimeError)),
                  internal::StrCat("An error that a ", what, " reports. `code` names the cause."));
  types.input_error =
      DefineClass(module, "InputError", py::make_tuple(types.error, builtin(PyExc_ValueError)),
                  internal::StrCat("An input that the ", what, " does not accept. The ", what,
                                   " was not run."));
  return types;
}

void ErrorTypes::Raise(const Error& error, const py::object& cause) const {
  const auto number = static_cast<int>(error.code());
  const py::object& type = number >= 100 && number < 200 ? input_error : this->error;
  py::object exception = type(ToStr(error.message()));
  exception.attr("code") = std::string(to_string(error.code()));
  // As `raise ... from cause` does; SetCause takes over the reference.
  if (cause) PyException_SetCause(exception.ptr(), py::object(cause).release().ptr());
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw py::error_already_set();
}

}  // namespace aoti::python
