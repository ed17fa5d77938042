#include "runtime/python/caller.h"

#include <optional>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/python/gil.h"
#include "runtime/python/outputs.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// The namedtuple of all outputs; none if the result has another structure.
py::object DefineOutputs(py::module_& module, const MethodSpec& names) {
  if (!names.result.empty()) return py::none();
  const std::vector<const char*> fields(names.output_names.begin(), names.output_names.end());
  return DefineNamedTuple(module, names.outputs_class, fields);
}

py::tuple ToTuple(std::vector<Tensor> tensors) {
  py::tuple fields(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) fields[i] = ToPython(std::move(tensors[i]));
  return fields;
}

}  // namespace

Caller::Caller(py::module_& module, const MethodSpec& names, const ProgramSpec& spec,
               const ErrorTypes& errors)
    : names_(names),
      spec_(spec),
      errors_(errors),
      outputs_type_(DefineOutputs(module, names)),
      result_(module, names.result) {}

py::object Caller::Call(const Model& model, const py::args& args, const py::kwargs& kwargs) const {
  std::vector<Tensor> tensors = Run(model, args, kwargs);
  if (!names_.result.empty()) return result_.Make(std::move(tensors));
  return MakeNamedTuple(outputs_type_, ToTuple(std::move(tensors)));
}

py::tuple Caller::CallFlat(const Model& model, const py::args& args,
                           const py::kwargs& kwargs) const {
  return ToTuple(Run(model, args, kwargs));
}

std::vector<Tensor> Caller::Run(const Model& model, const py::args& args,
                                const py::kwargs& kwargs) const {
  const std::vector<py::object> given = Bind(args, kwargs);
  std::vector<BorrowedInput> borrowed(given.size());
  std::vector<TensorView> views;
  views.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) views.push_back(Borrow(given[i], i, borrowed[i]));
  return errors_.Unwrap(WithoutGil([&] { return model.Run(views); }));
}

std::vector<py::object> Caller::Bind(const py::args& args, const py::kwargs& kwargs) const {
  const auto& names = names_.input_names;
  if (args.size() > names.size()) {
    throw py::type_error(StrCat(spec_.name, ": got ", args.size(),
                                " positional inputs, must be at most ", names.size(), Known()));
  }
  std::vector<py::object> given(names.size());
  for (std::size_t i = 0; i < args.size(); ++i) given[i] = args[i];
  for (const auto& [key, value] : kwargs) {
    const std::string name = FromStr(key);
    std::size_t i = 0;
    while (i < names.size() && name != names[i]) ++i;
    if (i == names.size()) {
      throw py::type_error(StrCat(spec_.name, ": there is no input \"", name, "\"", Known()));
    }
    if (given[i]) {
      throw py::type_error(StrCat(spec_.name, ": input \"", name, "\" is given twice"));
    }
    given[i] = py::reinterpret_borrow<py::object>(value);
  }
  return given;
}

TensorView Caller::Borrow(const py::object& object, std::size_t i, BorrowedInput& borrowed) const {
  const InputSpec& input = spec_.inputs[i];
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

void Caller::Refuse(std::size_t i, const Error& error, const py::object& cause) const {
  errors_.Raise(Error(error.code(), StrCat(spec_.name, ": input \"", spec_.inputs[i].name,
                                           "\": ", error.message())),
                cause);
}

std::string Caller::Known() const {
  std::string text;
  for (const char* name : names_.input_names) {
    text += text.empty() ? "; its inputs are " : ", ";
    text += name;
  }
  return text;
}

}  // namespace aoti::python
