#include "runtime/python/text.h"

#include "runtime/core/text.h"
#include "runtime/python/gil.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

// Clears an exception that was raised while a text was computed.
void Forget() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
  PyErr_Clear();
}

}  // namespace

py::str ToStr(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

std::string FromStr(py::handle text) {
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace");
  if (encoded == nullptr) throw py::error_already_set();
  const auto bytes = py::reinterpret_steal<py::bytes>(encoded);
  return {PyBytes_AS_STRING(encoded), static_cast<std::size_t>(PyBytes_GET_SIZE(encoded))};
}

std::string TypeName(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

std::string Repr(py::handle object) {
  constexpr std::size_t kMost = 100;
  PyObject* text = Anchored([&] { return PyObject_Repr(object.ptr()); });
  if (text == nullptr) {
    Forget();
    return internal::StrCat("an object of ", TypeName(object));
  }
  const auto steal = py::reinterpret_steal<py::object>(text);
  std::string repr = FromStr(steal);
  if (repr.size() > kMost) repr = internal::StrCat(repr.substr(0, kMost), "...");
  return repr;
}

std::string Describe(const py::error_already_set& error) {
  const std::string type = TypeName(error.value());
  PyObject* text = Anchored([&] { return PyObject_Str(error.value().ptr()); });
  if (text == nullptr) {  // its __str__() raised an exception
    Forget();
    return type;
  }
  const auto message = py::reinterpret_steal<py::object>(text);
  return internal::StrCat(type, ": ", FromStr(message));
}

}  // namespace aoti::python
