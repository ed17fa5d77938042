// Text between C++ and Python. Names in files and the arguments of calls may be no valid UTF-8.

#ifndef AOTI_RUNTIME_PYTHON_TEXT_H_
#define AOTI_RUNTIME_PYTHON_TEXT_H_

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace aoti::python {

// A str; bytes that are no UTF-8 become escapes such as "\xff".
pybind11::str ToStr(std::string_view text);

// A str as UTF-8; what has no UTF-8 (half a surrogate pair) becomes an escape such as "\udc80".
std::string FromStr(pybind11::handle text);

// The name of an object's type, as a message says it.
std::string TypeName(pybind11::handle object);

// What repr() says, cut where it is long; the type's name where that fails.
std::string Repr(pybind11::handle object);

// "BufferError: the tensor requires a gradient", the last line of a traceback.
std::string Describe(const pybind11::error_already_set& error);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_TEXT_H_
