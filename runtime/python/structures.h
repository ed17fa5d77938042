// Arguments that are structures of inputs: a list for the inputs "cache[0]" and "cache[1]".

#ifndef AOTI_RUNTIME_PYTHON_STRUCTURES_H_
#define AOTI_RUNTIME_PYTHON_STRUCTURES_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace aoti::python {

// The argument that an input with this path is, or is a part of: "cache" of "cache[0]".
std::string_view ArgumentName(std::string_view path);

// The number of inputs from paths[first] on that are parts of one argument; 0 for an input that is
// an argument itself.
std::size_t PartsFrom(std::span<const char* const> paths, std::size_t first);

// Whether an argument in the place of its first part is the whole structure.
bool IsStructure(pybind11::handle argument);

// Puts each part of the argument into its place; None is None in all places. Raises TypeError if
// the argument has other parts.
void Spread(const char* shown, pybind11::handle argument, std::span<const char* const> paths,
            std::span<pybind11::object> places);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_STRUCTURES_H_
