#include "runtime/python/seal.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s: cannot create objects of this class", type->tp_name);
  return nullptr;
}

}  // namespace

void Seal(const py::object& type, const char* message) {
  const auto refuse = [message](const py::args&, const py::kwargs&) -> py::object {
    throw py::type_error(message);
  };
  auto* const raw = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.attr("__new__") = py::module_::import("builtins")
                             .attr("staticmethod")(py::cpp_function(refuse, py::name("__new__")));
  for (const char* name : {"__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__"}) {
    type.attr(name) = py::cpp_function(refuse, py::name(name), py::is_method(type));
  }
  // Must come last, because the assignment of __new__ sets it too. pybind11_object.__new__(type)
  // compares it.
  raw->tp_new = &New;
  raw->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(raw);
}

}  // namespace aoti::python
