#include "runtime/python/structures.h"

#include <cstdlib>
#include <string>

#include "runtime/core/text.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// One step of a path: `.name`, `["name"]` or `[3]`.
struct Step {
  std::string_view key;
  bool is_int;
  std::size_t end;  // in the path
};

Step StepAt(std::string_view path, std::size_t at) {
  if (path[at] == '.') {
    const std::size_t end = path.find_first_of(".[", at + 1);
    const std::size_t last = end == std::string_view::npos ? path.size() : end;
    return {path.substr(at + 1, last - at - 1), false, last};
  }
  const bool quoted = path[at + 1] == '"';
  const std::size_t end = path.find(quoted ? "\"]" : "]", at + 1);
  const std::size_t first = at + (quoted ? 2 : 1);
  return {path.substr(first, end - first), !quoted, end + (quoted ? 2 : 1)};
}

class Spreader {
 public:
  Spreader(const char* shown, std::span<const char* const> paths, std::span<py::object> places)
      : shown_(shown), paths_(paths), places_(places) {}

  // The inputs from `first` to `last`, without the latter, are parts of `whole`, whose path ends at
  // `at` in theirs.
  void Spread(const py::object& whole, std::size_t first, std::size_t last, std::size_t at) {
    const std::string_view path = paths_[first];
    if (at == path.size()) {
      places_[first] = whole;
      return;
    }
    std::size_t count = 0;
    for (std::size_t i = first; i < last; ++count) {
      const Step step = StepAt(paths_[i], at);
      const std::string_view prefix = std::string_view(paths_[i]).substr(0, step.end);
      std::size_t end = i + 1;
      while (end < last && StepAt(paths_[end], at).end == step.end &&
             std::string_view(paths_[end]).substr(0, step.end) == prefix) {
        ++end;
      }
      Spread(Part(whole, step, path.substr(0, at)), i, end, step.end);
      i = end;
    }
    const bool counted =
        PyList_Check(whole.ptr()) || PyTuple_Check(whole.ptr()) || PyDict_Check(whole.ptr());
    if (counted && py::len(whole) != count) {
      throw py::type_error(StrCat(shown_, ": \"", path.substr(0, at), "\" has ", py::len(whole),
                                  " parts, must have ", count));
    }
  }

 private:
  py::object Part(const py::object& whole, const Step& step, std::string_view place) const {
    const bool is_sequence = PyList_Check(whole.ptr()) || PyTuple_Check(whole.ptr());
    const std::string text(step.key);
    PyObject* part = nullptr;
    if (PyDict_Check(whole.ptr())) {
      const py::object key = step.is_int ? py::object(py::int_(std::atoll(text.c_str())))
                                         : py::object(ToStr(step.key));
      part = PyObject_GetItem(whole.ptr(), key.ptr());
    } else if (step.is_int && is_sequence) {
      part = PySequence_GetItem(whole.ptr(), std::atoll(text.c_str()));
    } else if (!step.is_int) {
      part = PyObject_GetAttrString(whole.ptr(), text.c_str());
    }
    if (part != nullptr) return py::reinterpret_steal<py::object>(part);
    if (PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
      PyErr_Clear();
    }
    throw py::type_error(StrCat(shown_, ": \"", place, "\" is a ", TypeName(whole),
                                " without the part \"", step.key, "\""));
  }

  const char* shown_;
  std::span<const char* const> paths_;
  std::span<py::object> places_;
};

}  // namespace

std::string_view ArgumentName(std::string_view path) {
  return path.substr(0, path.find_first_of(".["));
}

std::size_t PartsFrom(std::span<const char* const> paths, std::size_t first) {
  if (first >= paths.size()) return 0;
  const std::string_view name = ArgumentName(paths[first]);
  if (name.size() == std::string_view(paths[first]).size()) return 0;
  std::size_t end = first;
  while (end < paths.size() && ArgumentName(paths[end]) == name) ++end;
  return end - first;
}

bool IsStructure(py::handle argument) {
  return argument.is_none() || PyList_Check(argument.ptr()) || PyTuple_Check(argument.ptr()) ||
         PyDict_Check(argument.ptr());
}

void Spread(const char* shown, py::handle argument, std::span<const char* const> paths,
            std::span<py::object> places) {
  if (argument.is_none()) {
    for (py::object& place : places) place = py::none();
    return;
  }
  const std::size_t root = ArgumentName(paths[0]).size();
  Spreader(shown, paths, places)
      .Spread(py::reinterpret_borrow<py::object>(argument), 0, paths.size(), root);
}

}  // namespace aoti::python
