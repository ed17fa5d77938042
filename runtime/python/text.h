// Text between C++ and Python. Names in files and the arguments of calls may be invalid UTF-8.

#ifndef AOTI_RUNTIME_PYTHON_TEXT_H_
#define AOTI_RUNTIME_PYTHON_TEXT_H_

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace aoti::python {

// A str; invalid bytes become escapes such as "\xff".
pybind11::str ToStr(std::string_view text);

// A str as UTF-8; lone surrogates, which UTF-8 can't represent, become escapes such as "\udc80".
std::string FromStr(pybind11::handle text);

// The name of an object's type, for messages.
std::string TypeName(pybind11::handle object);

// The result of repr(), truncated if it is long; the type's name if repr() fails.
std::string Repr(pybind11::handle object);

// An exception as the last line of a traceback shows it: "BufferError: the tensor requires a
// gradient".
std::string Describe(const pybind11::error_already_set& error);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_TEXT_H_
