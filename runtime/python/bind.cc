#include "runtime/python/bind.h"

#include <cstddef>
#include <string>

#include "runtime/core/text.h"
#include "runtime/python/structures.h"
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
                             std::span<const char* const> paths, const py::args& args,
                             const py::kwargs& kwargs) {
  std::vector<py::object> given(names.size());
  const auto spread = [&](py::handle argument, std::size_t first, std::size_t parts) {
    Spread(shown, argument, paths.subspan(first, parts),
           std::span<py::object>(given).subspan(first, parts));
  };
  std::size_t next = 0;
  for (const py::handle argument : args) {
    const bool first = next == 0 || next >= paths.size() ||
                       ArgumentName(paths[next]) != ArgumentName(paths[next - 1]);
    const std::size_t parts = first && IsStructure(argument) ? PartsFrom(paths, next) : 0;
    if (parts > 0) {
      spread(argument, next, parts);
    } else if (next < names.size()) {
      given[next] = py::reinterpret_borrow<py::object>(argument);
    } else {
      throw py::type_error(StrCat(shown, ": got ", args.size(),
                                  " positional inputs, must be at most ", names.size(),
                                  Known(names)));
    }
    next += parts > 0 ? parts : 1;
  }
  for (const auto& [key, value] : kwargs) {
    const std::string name = FromStr(key);
    std::size_t i = 0;
    while (i < names.size() && name != names[i]) ++i;
    std::size_t parts = 1;
    if (i == names.size()) {
      i = 0;
      while (i < paths.size() && name != ArgumentName(paths[i])) ++i;
      parts = PartsFrom(paths, i);
      if (parts == 0) {
        throw py::type_error(StrCat(shown, ": there is no input \"", name, "\"", Known(names)));
      }
    }
    for (std::size_t part = i; part < i + parts; ++part) {
      if (!given[part]) continue;
      throw py::type_error(StrCat(shown, ": input \"", names[part], "\" is given twice"));
    }
    if (name == names[i]) {
      given[i] = py::reinterpret_borrow<py::object>(value);
    } else {
      spread(value, i, parts);
    }
  }
  return given;
}

}  // namespace aoti::python
