#include "runtime/python/definition.h"

#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace aoti::python {
namespace py = pybind11;
namespace {

// Never freed, because Python keeps pointers to definitions.
struct Definition : PyModuleDef {
  ModuleDefinition module;
  PyObject* members = nullptr;  // that the first import made
};

// Fills a module, each time that it is imported.
int Execute(PyObject* raw) {
  auto& definition = *static_cast<Definition*>(PyModule_GetDef(raw));
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_Format(PyExc_ImportError,
                 "%s: %s work in the main interpreter alone; import the module there",
                 definition.module.shown, definition.module.things);
    return -1;
  }
  try {
    auto module = py::reinterpret_borrow<py::module_>(raw);
    if (definition.members == nullptr) {
      pybind11::detail::get_internals();
      definition.module.define(module);
      definition.members = py::dict(module.attr("__dict__").attr("copy")()).release().ptr();
      return 0;
    }
    for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(definition.members)) {
      if (!py::hasattr(module, name) || name.equal(py::str("__doc__"))) {
        module.attr(name) = value;
      }
    }
    return 0;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  }
  return -1;
}

}  // namespace

PyObject* InitDefinition(const void* key, ModuleDefinition definition) {
  PYBIND11_CHECK_PYTHON_VERSION
  static std::mutex mutex;
  static auto* const definitions = new std::map<const void*, Definition>;
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {}};
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = definitions->try_emplace(key);
  Definition& kept = entry->second;
  if (is_new) {
    static_cast<PyModuleDef&>(kept) = {PyModuleDef_HEAD_INIT};
    kept.m_name = definition.name;
    kept.m_slots = slots;
    kept.module = std::move(definition);
  }
  return PyModuleDef_Init(&kept);
}

}  // namespace aoti::python
