#include "runtime/python/module.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/text.h"
#include "runtime/python/errors.h"
#include "runtime/python/gil.h"
#include "runtime/python/inputs.h"
#include "runtime/python/outputs.h"
#include "runtime/python/results.h"
#include "runtime/python/seal.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// The state that the objects of one module share. Never destroyed: modules are not unloaded.
struct ModuleState {
  const ModuleSpec& module;
  const ProgramSpec& spec;
  ErrorTypes errors;
  py::object outputs_type;  // the namedtuple Outputs, where a call returns that
  ResultMaker result;       // where it does not
};

// A str, bytes or os.PathLike as a path in the file system's encoding.
std::string ToPath(const ModuleState& state, const py::object& path) {
  PyObject* bytes = nullptr;
  py::object cause;
  if (Anchored([&] { return PyUnicode_FSConverter(path.ptr(), &bytes); }) == 0) {
    const py::error_already_set error;
    if (!error.matches(PyExc_ValueError)) throw error;
    cause = error.value();  // a NUL character, or a character that the file system's encoding lacks
  }
  const auto owner = py::reinterpret_steal<py::object>(bytes);
  if (bytes == nullptr || PyBytes_GET_SIZE(bytes) == 0) {
    state.errors.Raise(Error(ErrorCode::kInvalidArgument,
                             StrCat(state.spec.name, ": weights is ", Repr(path),
                                    ", must be the path of a safetensors file, or None for the "
                                    "weights that were built with the model")),
                       cause);
  }
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

class PyModel {
 public:
  PyModel(const ModuleState& state, Model model) : state_(state), model_(std::move(model)) {}

  py::object Call(const py::args& args, const py::kwargs& kwargs) const {
    std::vector<Tensor> tensors = Run(args, kwargs);
    if (!state_.module.result.empty()) return state_.result.Make(std::move(tensors));
    return MakeNamedTuple(state_.outputs_type, ToTuple(std::move(tensors)));
  }

  // All outputs in a tuple, whatever structure forward() gives them; numbers are arrays of rank 0.
  py::tuple CallFlat(const py::args& args, const py::kwargs& kwargs) const {
    return ToTuple(Run(args, kwargs));
  }

  std::string Repr() const { return StrCat("<Model ", model_.spec().label, ">"); }

  void SwapWeights(const py::object& weights, bool copy_weights) const {
    const std::string path = weights.is_none() ? "" : ToPath(state_, weights);
    if (auto error = WithoutGil([&] { return model_.SwapWeights(path, copy_weights); })) {
      state_.errors.Raise(*error);
    }
  }

  void ManualSeed(std::uint64_t seed) const {
    if (auto error = model_.ManualSeed(seed)) state_.errors.Raise(*error);
  }

 private:
  static py::tuple ToTuple(std::vector<Tensor> tensors) {
    py::tuple fields(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) fields[i] = ToPython(std::move(tensors[i]));
    return fields;
  }

  std::vector<Tensor> Run(const py::args& args, const py::kwargs& kwargs) const {
    const std::vector<py::object> given = Bind(args, kwargs);
    std::vector<BorrowedInput> borrowed(given.size());
    std::vector<TensorView> views;
    views.reserve(given.size());
    for (std::size_t i = 0; i < given.size(); ++i)
      views.push_back(Borrow(given[i], i, borrowed[i]));
    return state_.errors.Unwrap(WithoutGil([&] { return model_.Run(views); }));
  }

  // The arguments in the spec's order, bound as Python binds a function's arguments; null: not
  // given.
  std::vector<py::object> Bind(const py::args& args, const py::kwargs& kwargs) const {
    const auto& names = state_.module.input_names;
    if (args.size() > names.size()) {
      throw py::type_error(StrCat(state_.spec.name, ": got ", args.size(),
                                  " positional inputs, must be at most ", names.size(), Known()));
    }
    std::vector<py::object> given(names.size());
    for (std::size_t i = 0; i < args.size(); ++i) given[i] = args[i];
    for (const auto& [key, value] : kwargs) {
      const std::string name = FromStr(key);
      std::size_t i = 0;
      while (i < names.size() && name != names[i]) ++i;
      if (i == names.size()) {
        throw py::type_error(
            StrCat(state_.spec.name, ": there is no input \"", name, "\"", Known()));
      }
      if (given[i]) {
        throw py::type_error(StrCat(state_.spec.name, ": input \"", name, "\" is given twice"));
      }
      given[i] = py::reinterpret_borrow<py::object>(value);
    }
    return given;
  }

  TensorView Borrow(const py::object& object, std::size_t i, BorrowedInput& borrowed) const {
    const InputSpec& input = state_.spec.inputs[i];
    if (!object) return input.has_default ? borrowed.Default(input) : TensorView::Missing();
    std::optional<Result<TensorView>> view;
    try {
      view.emplace(input.number ? borrowed.BorrowNumber(object, input.dtype)
                                : borrowed.Borrow(object));
    } catch (py::error_already_set& error) {
      // Exceptions that are not about the input are passed on: KeyboardInterrupt, SystemExit,
      // MemoryError.
      if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
      const std::string message =
          StrCat(TypeName(object), ": ", borrowed.Doing(), " raised ", Describe(error));
      Refuse(i, {ErrorCode::kInvalidArgument, message}, error.value());
    }
    if (!view->ok()) Refuse(i, view->error());
    if (borrowed.IsCopy() && input.mutated) {
      Refuse(i, {ErrorCode::kReadOnly,
                 StrCat(TypeName(object),
                        ".__dlpack__() exports a copy, but the model writes to the input")});
    }
    return **view;
  }

  [[noreturn]] void Refuse(std::size_t i, const Error& error, const py::object& cause = {}) const {
    state_.errors.Raise(
        Error(error.code(), StrCat(state_.spec.name, ": input \"", state_.spec.inputs[i].name,
                                   "\": ", error.message())),
        cause);
  }

  // The names of the inputs, for the end of an error message.
  std::string Known() const {
    std::string text;
    for (const char* name : state_.module.input_names) {
      text += text.empty() ? "; its inputs are " : ", ";
      text += name;
    }
    return text;
  }

  const ModuleState& state_;
  Model model_;
};

std::string ShapeOf(const OutputSpec& output) {
  std::string text;
  for (const char* size : output.sizes) {
    if (!text.empty()) text += ", ";
    text += size;
  }
  return StrCat(output.dtype, "[", text, "]");
}

void DefineSignature(py::module_& module, const ModuleSpec& names, const ProgramSpec& spec) {
  py::dict inputs;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    inputs[names.input_names[i]] = internal::TypeText(spec.inputs[i]);
  }
  py::dict outputs;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    outputs[names.output_names[i]] = ShapeOf(spec.outputs[i]);
  }
  py::dict dims;
  for (const DimSpec& dim : spec.dims) dims[dim.name] = py::make_tuple(dim.min, dim.max);
  module.attr("inputs") = inputs;
  module.attr("outputs") = outputs;
  module.attr("dims") = dims;
}

void DefineProvenance(py::module_& module, const ProgramSpec& spec) {
  const std::string_view text = spec.provenance();
  if (text.empty()) return;
  module.attr("__provenance__") =
      py::module_::import("json").attr("loads")(py::str(text.data(), text.size()));
}

// The namedtuple of all outputs; none if forward()'s result has another structure.
py::object DefineOutputs(py::module_& module, const ModuleSpec& names) {
  if (!names.result.empty()) return py::none();
  const std::vector<const char*> fields(names.output_names.begin(), names.output_names.end());
  return DefineNamedTuple(module, "Outputs", fields);
}

PyModel LoadModel(const ModuleState& state, const py::object& weights,
                  const std::optional<int>& num_runners, bool check_values, int threads,
                  bool copy_weights) {
  LoadOptions options;
  if (!weights.is_none()) options.weights_path = ToPath(state, weights);
  options.copy_weights = copy_weights;
  options.num_runners = num_runners.value_or(0);
  options.check_values = check_values;
  options.threads = threads;
  return {state, state.errors.Unwrap(WithoutGil([&] { return Model::Load(state.spec, options); }))};
}

void DefineModule(py::module_& module, const ModuleSpec& names, const ProgramSpec& spec) {
  module.doc() = names.doc;
  // Never freed, like the classes below.
  const auto* state =
      new ModuleState{names, spec, ErrorTypes::Define(module), DefineOutputs(module, names),
                      ResultMaker(module, names.result)};
  DefineTensor(module);
  DefineSignature(module, names, spec);
  DefineProvenance(module, spec);
  // module_local: a process may load the modules of any number of models.
  py::class_<PyModel> model(
      module, "Model", py::module_local(), py::is_final(),
      "A loaded model, made by load() alone. Thread safe; calls release the GIL.");
  model.def("__call__", Method(&PyModel::Call))
      .def("_flat", Method(&PyModel::CallFlat))
      .def("swap_weights", Method(&PyModel::SwapWeights), py::arg("weights"),
           py::arg("copy_weights") = false,
           "Replaces the weights (None: by those built with the model), also while calls run.")
      .def("manual_seed", Method(&PyModel::ManualSeed), py::arg("seed"),
           "Seeds the random operators of all models on the slim runtime.")
      .def("__repr__", Method(&PyModel::Repr));
  Seal(model, "a Model can't be made, copied or pickled: call load(), in each process");
  module.def(
      "load",
      [state](const py::object& weights, const std::optional<int>& num_runners, bool check_values,
              int threads, bool copy_weights) {
        return LoadModel(*state, weights, num_runners, check_values, threads, copy_weights);
      },
      py::arg("weights") = py::none(), py::arg("num_runners") = py::none(),
      py::arg("check_values") = true, py::arg("threads") = 0, py::arg("copy_weights") = false,
      "Maps the weights (default: those built with the model) and prepares the program.");
}

// One generated module of this binary. Never freed, because Python keeps pointers to definitions.
struct Definition : PyModuleDef {
  const ModuleSpec* names;
  const ProgramSpec* spec;
  PyObject* members = nullptr;  // the members that the first import made
};

// Fills a module, each time that it is imported.
int Execute(PyObject* raw) {
  auto& definition = *static_cast<Definition*>(PyModule_GetDef(raw));
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_Format(PyExc_ImportError,
                 "%s: models work in the main interpreter alone; import the module there",
                 definition.spec->name);
    return -1;
  }
  try {
    auto module = py::reinterpret_borrow<py::module_>(raw);
    if (definition.members == nullptr) {
      pybind11::detail::get_internals();
      DefineModule(module, *definition.names, *definition.spec);
      definition.members = py::dict(module.attr("__dict__").attr("copy")()).release().ptr();
    } else {  // later imports reuse the classes, which can be made only once
      for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(definition.members)) {
        if (!py::hasattr(module, name) || name.equal(py::str("__doc__"))) {
          module.attr(name) = value;
        }
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

Definition& DefinitionOf(const ModuleSpec& names, const ProgramSpec& spec) {
  static std::mutex mutex;
  static auto* const definitions = new std::map<const ModuleSpec*, Definition>;
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {}};
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = definitions->try_emplace(&names);
  Definition& definition = entry->second;
  if (is_new) {
    static_cast<PyModuleDef&>(definition) = {PyModuleDef_HEAD_INIT};
    definition.m_name = names.name;
    definition.m_slots = slots;
    definition.names = &names;
    definition.spec = &spec;
  }
  return definition;
}

}  // namespace

_object* InitModule(const ModuleSpec& names, const ProgramSpec& spec) {
  PYBIND11_CHECK_PYTHON_VERSION
  return PyModuleDef_Init(&DefinitionOf(names, spec));
}

}  // namespace aoti::python
