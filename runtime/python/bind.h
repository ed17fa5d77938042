// Binds arguments to names as Python binds a function's arguments.

#ifndef AOTI_RUNTIME_PYTHON_BIND_H_
#define AOTI_RUNTIME_PYTHON_BIND_H_

#include <pybind11/pybind11.h>

#include <span>
#include <vector>

namespace aoti::python {

// The arguments in the order of `names`; null: not given. Raises TypeError, whose text begins with
// `shown`.
//
// paths: of the inputs with these names, where some are parts of a structure ("cache[0]"): then the
// structure may be given in place of its parts. Otherwise empty.
std::vector<pybind11::object> Bind(const char* shown, std::span<const char* const> names,
                                   std::span<const char* const> paths, const pybind11::args& args,
                                   const pybind11::kwargs& kwargs);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_BIND_H_
