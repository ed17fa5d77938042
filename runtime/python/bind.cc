#include "runtime/python/bind.h"

#include <cstddef>
#include <string>

#include "runtime/core/text.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// For the end of an error message.
std::string Known(std::span<const char* const> names) {
  std::string text;
  for (const char* name : names) {
    text += text.empty() ? "; its inputs are " : ", ";
    text += name;
  }
  return text;
}

}  // namespace

std::vector<py::object> Bind(const char* shown, std::span<const char* const> names,
                             const py::args& args, const py::kwargs& kwargs) {
  if (args.size() > names.size()) {
    throw py::type_error(StrCat(shown, ": got ", args.size(),
                                " positional inputs, must be at most ", names.size(),
                                Known(names)));
  }
  std::vector<py::object> given(names.size());
  for (std::size_t i = 0; i < args.size(); ++i) given[i] = args[i];
  for (const auto& [key, value] : kwargs) {
    const std::string name = FromStr(key);
    std::size_t i = 0;
    while (i < names.size() && name != names[i]) ++i;
    if (i == names.size()) {
      throw py::type_error(StrCat(shown, ": there is no input \"", name, "\"", Known(names)));
    }
    if (given[i]) throw py::type_error(StrCat(shown, ": input \"", name, "\" is given twice"));
    given[i] = py::reinterpret_borrow<py::object>(value);
  }
  return given;
}

}  // namespace aoti::python
