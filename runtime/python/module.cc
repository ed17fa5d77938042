#include "runtime/python/module.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/text.h"
#include "runtime/python/errors.h"
#include "runtime/python/inputs.h"
#include "runtime/python/outputs.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// What the objects of one module share. Never destroyed: modules are not unloaded.
struct ModuleState {
  const ModuleSpec& module;
  const internal::ProgramSpec& spec;
  ErrorTypes errors;
  py::object outputs_type;  // the namedtuple Outputs
};

class PyModel {
 public:
  PyModel(const ModuleState& state, Model model) : state_(state), model_(std::move(model)) {}

  py::object Call(const py::args& args, const py::kwargs& kwargs) const {
    const std::vector<py::object> given = Bind(args, kwargs);
    std::vector<BorrowedInput> borrowed(given.size());
    std::vector<TensorView> views;
    views.reserve(given.size());
    for (std::size_t i = 0; i < given.size(); ++i)
      views.push_back(Borrow(given[i], i, borrowed[i]));
    std::optional<Result<std::vector<Tensor>>> results;
    {
      const py::gil_scoped_release release;
      results.emplace(model_.Run(views));
    }
    std::vector<Tensor> tensors = state_.errors.Unwrap(*std::move(results));
    py::list fields;
    for (Tensor& tensor : tensors) fields.append(ToPython(std::move(tensor)));
    return state_.outputs_type(*fields);
  }

  std::string Repr() const { return StrCat("<Model ", model_.spec().label, ">"); }

  void ManualSeed(std::uint64_t seed) const {
    if (auto error = model_.ManualSeed(seed)) state_.errors.Raise(*error);
  }

 private:
  // The arguments in the spec's order, as Python binds those of a function; null: not given.
  std::vector<py::object> Bind(const py::args& args, const py::kwargs& kwargs) const {
    const auto& names = state_.module.input_names;
    if (args.size() > names.size()) {
      throw py::type_error(StrCat(state_.spec.name, ": got ", args.size(),
                                  " positional inputs, must be at most ", names.size(), Known()));
    }
    std::vector<py::object> given(names.size());
    for (std::size_t i = 0; i < args.size(); ++i) given[i] = args[i];
    for (const auto& [key, value] : kwargs) {
      const auto name = key.cast<std::string>();
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
    if (!object) return TensorView::Missing();
    auto view = borrowed.Borrow(object);
    if (view.ok()) return *view;
    state_.errors.Raise(Error(view.error().code(),
                              StrCat(state_.spec.name, ": input \"", state_.spec.inputs[i].name,
                                     "\": ", view.error().message())));
  }

  // For the end of an error message.
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

void DefineSignature(py::module_& module, const ModuleSpec& names,
                     const internal::ProgramSpec& spec) {
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

void DefineProvenance(py::module_& module, const internal::ProgramSpec& spec) {
  const std::string_view text = spec.provenance();
  if (text.empty()) return;
  module.attr("__provenance__") =
      py::module_::import("json").attr("loads")(py::str(text.data(), text.size()));
}

py::object MakeOutputsType(const py::module_& module, const ModuleSpec& names) {
  py::list fields;
  for (const char* name : names.output_names) fields.append(name);
  return py::module_::import("collections")
      .attr("namedtuple")("Outputs", fields, py::arg("module") = module.attr("__name__"));
}

PyModel LoadModel(const ModuleState& state, const py::object& weights,
                  const std::optional<int>& num_runners, bool check_values, int threads) {
  LoadOptions options;
  if (!weights.is_none()) {
    options.weights_path = py::module_::import("os").attr("fsdecode")(weights).cast<std::string>();
  }
  options.num_runners = num_runners.value_or(0);
  options.check_values = check_values;
  options.threads = threads;
  std::optional<Result<Model>> model;
  {
    const py::gil_scoped_release release;
    model.emplace(Model::Load(state.spec, options));
  }
  return {state, state.errors.Unwrap(*std::move(model))};
}

void DefineModule(py::module_& module, const ModuleSpec& names, const internal::ProgramSpec& spec) {
  module.doc() = names.doc;
  // Kept for ever, as the classes below are.
  const auto* state =
      new ModuleState{names, spec, ErrorTypes::Define(module), MakeOutputsType(module, names)};
  module.attr("Outputs") = state->outputs_type;
  DefineTensor(module);
  DefineSignature(module, names, spec);
  DefineProvenance(module, spec);
  // module_local: any number of models' modules live in one process.
  py::class_<PyModel>(module, "Model", py::module_local(),
                      "A loaded model. Thread safe; calls release the GIL.")
      .def("__call__", &PyModel::Call)
      .def("manual_seed", &PyModel::ManualSeed, py::arg("seed"),
           "Seeds the random operators of all models on the slim runtime.")
      .def("__repr__", &PyModel::Repr);
  module.def(
      "load",
      [state](const py::object& weights, const std::optional<int>& num_runners, bool check_values,
              int threads) {
        return LoadModel(*state, weights, num_runners, check_values, threads);
      },
      py::arg("weights") = py::none(), py::arg("num_runners") = py::none(),
      py::arg("check_values") = true, py::arg("threads") = 0,
      "Maps the weights (default: those built with the model) and prepares the program.");
}

}  // namespace

_object* InitModule(const ModuleSpec& names, const internal::ProgramSpec& spec) {
  PYBIND11_CHECK_PYTHON_VERSION
  try {
    pybind11::detail::get_internals();
    // One per shared library: this file is linked into each generated module.
    static py::module_::module_def definition;
    auto module = py::module_::create_extension_module(names.name, nullptr, &definition);
    DefineModule(module, names, spec);
    return module.release().ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return nullptr;
}

}  // namespace aoti::python
