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
#include "aoti/session.h"
#include "runtime/core/session_state.h"
#include "runtime/core/text.h"
#include "runtime/python/caller.h"
#include "runtime/python/definition.h"
#include "runtime/python/errors.h"
#include "runtime/python/gil.h"
#include "runtime/python/outputs.h"
#include "runtime/python/seal.h"
#include "runtime/python/signature.h"
#include "runtime/python/text.h"
#include "runtime/python/variants.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// What a module is made of.
struct Contents {
  const char* name;
  const char* label;
  const char* doc;
  const char* shown;  // starts the errors that are about no method
  bool has_methods;
  std::vector<MethodSpec> methods;
  std::vector<const ProgramSpec*> specs;
  std::vector<FunctionNames> function_names;
  std::vector<const FunctionSpec*> functions;  // with variants
};

// The state that the objects of one module share. Never destroyed: modules are not unloaded.
struct ModuleState {
  const Contents& contents;
  ErrorTypes errors;
  std::vector<Caller> callers;           // of each program
  std::vector<VariantCaller> functions;  // those with variants
};

// A str, bytes or os.PathLike as a path in the file system's encoding; empty for None. `what` and
// `none` are the argument and what None means, for errors.
std::string ToPath(const ModuleState& state, const py::object& path, std::string_view what,
                   std::string_view none) {
  if (path.is_none()) return "";
  PyObject* bytes = nullptr;
  py::object cause;
  if (Anchored([&] { return PyUnicode_FSConverter(path.ptr(), &bytes); }) == 0) {
    const py::error_already_set error;
    if (!error.matches(PyExc_ValueError)) throw error;
    cause = error.value();  // a NUL character, or a character that the file system's encoding lacks
  }
  const auto owner = py::reinterpret_steal<py::object>(bytes);
  if (bytes == nullptr || PyBytes_GET_SIZE(bytes) == 0) {
    state.errors.Raise(
        Error(ErrorCode::kInvalidArgument,
              StrCat(state.contents.shown, ": ", what, " is ", Repr(path),
                     ", must be the path of a safetensors file, or None for ", none)),
        cause);
  }
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

std::string ToWeightsPath(const ModuleState& state, const py::object& path) {
  return ToPath(state, path, "weights", "the weights that were built with the model");
}

std::string ToAdapterPath(const ModuleState& state, const py::object& path) {
  return ToPath(state, path, "adapter", "none");
}

class PySession;

class PyModel {
 public:
  // `models`: one for each method.
  PyModel(const ModuleState& state, std::vector<Model> models, const RunOptions& options = {})
      : PyModel(state, std::make_shared<const std::vector<Model>>(std::move(models)), options) {}
  // Not copied: pybind11 believes that any vector can be.
  PyModel(PyModel&&) = default;

  py::object Call(std::size_t method, const py::args& args, const py::kwargs& kwargs) const {
    return state_.callers[method].Call(models_[method], options_, args, kwargs);
  }

  py::object CallVariant(std::size_t function, const py::args& args,
                         const py::kwargs& kwargs) const {
    return state_.functions[function].Call(models_, options_, args, kwargs);
  }

  py::object Explain(std::size_t function, const py::args& args, const py::kwargs& kwargs) const {
    return state_.functions[function].Explain(DeviceOf(models_.front(), options_), args, kwargs);
  }

  // Of models with one program, or with one function.
  py::tuple CallFlat(const py::args& args, const py::kwargs& kwargs) const {
    if (!state_.functions.empty())
      return state_.functions[0].CallFlat(models_, options_, args, kwargs);
    return state_.callers[0].CallFlat(models_[0], options_, args, kwargs);
  }

  void SwapWeights(const py::object& weights, bool copy_weights, const py::object& adapter) const {
    const std::string path = ToWeightsPath(state_, weights);
    const std::string adapter_path = ToAdapterPath(state_, adapter);
    const auto swap = [&] { return models_[0].SwapAdapter(adapter_path, path, copy_weights); };
    if (auto error = WithoutGil(swap)) state_.errors.Raise(*error);
  }

  PySession NewSession() const;

  // The same model, or session, whose calls run with options.
  PyModel WithOptions(std::uintptr_t cuda_stream, bool outputs_on_device) const {
    RunOptions options;
    options.cuda_stream = reinterpret_cast<void*>(cuda_stream);
    options.outputs_on_device = outputs_on_device;
    return {state_, shared_, options};
  }

  void ManualSeed(std::uint64_t seed) const {
    for (const Model& model : models_) {
      if (auto error = model.ManualSeed(seed)) state_.errors.Raise(*error);
    }
  }

  std::string Repr() const { return StrCat("<Model ", state_.contents.label, ">"); }

 protected:
  const ModuleState& state_;
  const std::shared_ptr<const std::vector<Model>> shared_;
  const std::vector<Model>& models_;
  const RunOptions options_;

 private:
  PyModel(const ModuleState& state, std::shared_ptr<const std::vector<Model>> models,
          const RunOptions& options)
      : state_(state), shared_(std::move(models)), models_(*shared_), options_(options) {}
};

// A model whose calls work on a state of their own.
class PySession final : public PyModel {
 public:
  PySession(const ModuleState& state, std::vector<Model> models, Session session)
      : PyModel(state, std::move(models)), session_(std::move(session)) {}

  PySession Fork() const {
    return Make(state_, models_, [&] { return session_.Fork(); });
  }

  void Reset() const {
    if (auto error = WithoutGil([&] { return session_.Reset(); })) state_.errors.Raise(*error);
  }

  py::bytes Save() const {
    return state_.errors.Unwrap(WithoutGil([&] { return session_.Save(); }));
  }

  void Load(const py::object& saved) const {
    Py_buffer view;
    if (PyObject_GetBuffer(saved.ptr(), &view, PyBUF_SIMPLE) != 0) throw py::error_already_set();
    const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> owner(&view, &PyBuffer_Release);
    const std::string_view bytes(static_cast<const char*>(view.buf),
                                 static_cast<std::size_t>(view.len));
    if (auto error = WithoutGil([&] { return session_.Load(bytes); })) state_.errors.Raise(*error);
  }

  std::string Repr() const { return StrCat("<Session ", state_.contents.label, ">"); }

  // `make` returns the session, and is called without the GIL.
  template <typename Function>
  static PySession Make(const ModuleState& state, const std::vector<Model>& models,
                        const Function& make) {
    Session session = state.errors.Unwrap(WithoutGil(make));
    std::vector<Model> bound;
    for (const Model& model : models) bound.push_back(state.errors.Unwrap(session.Bind(model)));
    return {state, std::move(bound), std::move(session)};
  }

 private:
  Session session_;
};

PySession PyModel::NewSession() const {
  return PySession::Make(state_, models_, [&] { return models_[0].NewSession(); });
}

Result<std::vector<Model>> LoadPrograms(const Contents& contents, const LoadOptions& options) {
  if (contents.has_methods) return Model::LoadMethods(contents.specs, options);
  auto model = Model::Load(*contents.specs[0], options);
  if (!model.ok()) return std::move(model).error();
  std::vector<Model> models;
  models.push_back(*std::move(model));
  return models;
}

Result<std::optional<DeviceType>> ToDevice(const ModuleState& state,
                                           const std::optional<std::string>& name) {
  if (!name) return std::optional<DeviceType>();
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    if (*name == to_string(device)) return std::optional(device);
  }
  return Error(ErrorCode::kInvalidArgument, StrCat(state.contents.shown, ": device is \"", *name,
                                                   "\", must be \"cpu\", \"cuda\" or None"));
}

PyModel LoadModel(const ModuleState& state, const py::object& weights,
                  const std::optional<int>& num_runners, bool check_values, int threads,
                  bool copy_weights, const py::object& adapter,
                  const std::optional<std::string>& device, int cuda_device, bool cuda_graphs) {
  LoadOptions options;
  options.device = state.errors.Unwrap(ToDevice(state, device));
  options.weights_path = ToWeightsPath(state, weights);
  options.adapter_path = ToAdapterPath(state, adapter);
  options.copy_weights = copy_weights;
  options.num_runners = num_runners.value_or(0);
  options.check_values = check_values;
  options.threads = threads;
  options.cuda_device = cuda_device;
  options.cuda_graphs = cuda_graphs;
  return {state,
          state.errors.Unwrap(WithoutGil([&] { return LoadPrograms(state.contents, options); }))};
}

// The signatures of the programs.
void DefineSignatures(py::module_& module, const Contents& contents) {
  if (!contents.has_methods) {
    DefineSignature(module, contents.methods[0], *contents.specs[0]);
    return;
  }
  DefineMethodClass(module);
  for (std::size_t i = 0; i < contents.methods.size(); ++i) {
    if (contents.methods[i].variant != nullptr) continue;
    DefineMethod(module, contents.methods[i], *contents.specs[i]);
  }
  for (std::size_t i = 0; i < contents.functions.size(); ++i) {
    DefineFunction(module, contents.function_names[i], *contents.functions[i], contents.methods,
                   contents.specs);
  }
}

// Calls of a PyModel or a PySession.
template <typename Class>
void DefineCalls(py::class_<Class>& type, const Contents& contents) {
  const auto with_options = [](const Class& self, std::uintptr_t stream, bool outputs_on_device) {
    return self.WithOptions(stream, outputs_on_device);
  };
  type.def("with_options", with_options, py::kw_only(), py::arg("cuda_stream") = 0,
           py::arg("outputs_on_device") = false,
           "A Model whose calls on CUDA run with these options, on the same weights and state: the "
           "caller's stream, as an int, and whether outputs stay in the GPU's memory. Calls on the "
           "CPU ignore them.");
  py::options options;
  options.disable_function_signatures();  // the text says more: the names of the inputs
  for (std::size_t i = 0; i < contents.methods.size(); ++i) {
    const MethodSpec& method = contents.methods[i];
    if (method.variant != nullptr) continue;
    const auto call = [i](const Class& self, const py::args& args, const py::kwargs& kwargs) {
      return self.Call(i, args, kwargs);
    };
    if (contents.has_methods) type.def(method.name, call, method.doc);
    // As in PyTorch, where a call of the module is one of forward().
    if (!contents.has_methods || std::string_view(method.name) == "forward") {
      type.def("__call__", call, method.doc);
    }
  }
  for (std::size_t i = 0; i < contents.functions.size(); ++i) {
    const FunctionNames& function = contents.function_names[i];
    const auto call = [i](const Class& self, const py::args& args, const py::kwargs& kwargs) {
      return self.CallVariant(i, args, kwargs);
    };
    const auto explain = [i](const Class& self, const py::args& args, const py::kwargs& kwargs) {
      return self.Explain(i, args, kwargs);
    };
    type.def(function.name, call, function.doc);
    if (std::string_view(function.name) == "forward") type.def("__call__", call, function.doc);
    type.def(function.explain, explain,
             "Says which variant a call with these arguments would run, and why those before it "
             "would not.");
  }
}

void DefineSessions(py::module_& module, py::class_<PyModel>& model, const Contents& contents) {
  py::class_<PySession> session(
      module, "Session", py::module_local(), py::is_final(),
      "A state of its own over a loaded model, made by Model.session() and fork(). Thread safe; "
      "calls of one session run one after the other.");
  DefineCalls(session, contents);
  session
      .def("fork", Method(&PySession::Fork),
           "Another session with the values that this one has; they are copied when one runs.")
      .def("reset", Method(&PySession::Reset), "Gives the state the values of the weights file.")
      .def("save", Method(&PySession::Save), "The state as the bytes of a safetensors file.")
      .def("load", Method(&PySession::Load), py::arg("saved"),
           "Replaces the state by one that save() returned.")
      .def("__repr__", Method(&PySession::Repr));
  Seal(session,
       "a Session can't be made, copied or pickled: call Model.session(), fork() or save()");
  model.def("session", Method(&PyModel::NewSession),
            "A new state, which begins with the values of the weights file.");
}

void DefineModule(py::module_& module, const Contents& contents) {
  module.doc() = contents.doc;
  // Never freed, like the classes below.
  auto* const state = new ModuleState{contents, ErrorTypes::Define(module), {}, {}};
  for (std::size_t i = 0; i < contents.methods.size(); ++i) {
    state->callers.emplace_back(module, contents.methods[i], *contents.specs[i], state->errors);
  }
  if (!contents.functions.empty()) {
    const py::object explanation = DefineNamedTuple(module, "Explanation", {"variant", "refused"});
    for (std::size_t i = 0; i < contents.functions.size(); ++i) {
      state->functions.emplace_back(contents.function_names[i], *contents.functions[i],
                                    state->callers, contents.specs, explanation, state->errors);
    }
  }
  module.attr("__program__") = contents.specs[0]->digest;
  DefineTensor(module);
  // module_local: a process may load the modules of any number of models.
  py::class_<PyModel> model(
      module, "Model", py::module_local(), py::is_final(),
      "A loaded model, made by load() alone. Thread safe; calls release the GIL.");
  DefineSignatures(module, contents);
  DefineCalls(model, contents);
  const bool one_function = contents.functions.size() == 1 && contents.function_names[0].single;
  if (!contents.has_methods || one_function) model.def("_flat", Method(&PyModel::CallFlat));
  model
      .def("swap_weights", Method(&PyModel::SwapWeights), py::arg("weights") = py::none(),
           py::arg("copy_weights") = false, py::arg("adapter") = py::none(),
           "Replaces the weights (None: by those built with the model), also while calls run. The "
           "tensors of the adapter take the place of those of the weights.")
      .def("manual_seed", Method(&PyModel::ManualSeed), py::arg("seed"),
           "Seeds the random operators of all models on the slim runtime.")
      .def("__repr__", Method(&PyModel::Repr));
  if (internal::HasState(*contents.specs[0])) DefineSessions(module, model, contents);
  Seal(model, "a Model can't be made, copied or pickled: call load(), in each process");
  module.def(
      "load",
      [state](const py::object& weights, const std::optional<int>& num_runners, bool check_values,
              int threads, bool copy_weights, const py::object& adapter, int cuda_device,
              const std::optional<std::string>& device, bool cuda_graphs) {
        return LoadModel(*state, weights, num_runners, check_values, threads, copy_weights, adapter,
                         device, cuda_device, cuda_graphs);
      },
      py::arg("weights") = py::none(), py::arg("num_runners") = py::none(),
      py::arg("check_values") = true, py::arg("threads") = 0, py::arg("copy_weights") = false,
      py::arg("adapter") = py::none(), py::arg("cuda_device") = 0, py::arg("device") = py::none(),
      py::arg("cuda_graphs") = false,
      "Maps the weights (default: those built with the model) and prepares the program. The "
      "tensors of the adapter take the place of those of the weights. A model for several devices "
      "runs on the one that is named, \"cpu\" (the default) or \"cuda\"; a model on CUDA, on the "
      "GPU with this number; with cuda_graphs, it records its kernels as CUDA graphs.");
}

PyObject* Init(const void* key, Contents contents) {
  const char* const name = contents.name;
  const char* const shown = contents.shown;
  // What the module makes refers to them.
  const auto kept = std::make_shared<const Contents>(std::move(contents));
  return InitDefinition(
      key, {name, shown, "models", [kept](py::module_& module) { DefineModule(module, *kept); }});
}

}  // namespace

_object* InitModule(const ModuleSpec& module, const ProgramSpec& spec) {
  const MethodSpec only = {.name = nullptr,
                           .input_names = module.input_names,
                           .output_names = module.output_names,
                           .input_paths = module.input_paths,
                           .result = module.result};
  return Init(&module,
              {module.name, spec.label, module.doc, spec.name, false, {only}, {&spec}, {}, {}});
}

_object* InitModule(const MethodsModuleSpec& module, std::span<const ProgramSpec* const> specs,
                    std::span<const FunctionSpec* const> functions) {
  return Init(&module, {module.name,
                        module.label,
                        module.doc,
                        module.name,
                        true,
                        {module.methods.begin(), module.methods.end()},
                        {specs.begin(), specs.end()},
                        {module.functions.begin(), module.functions.end()},
                        {functions.begin(), functions.end()}});
}

}  // namespace aoti::python
