#include "runtime/python/caller.h"

#include <utility>

#include "runtime/python/arguments.h"
#include "runtime/python/bind.h"
#include "runtime/python/gil.h"
#include "runtime/python/outputs.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

// The namedtuple of all outputs; none if the result has another structure.
py::object DefineOutputs(py::module_& module, const MethodSpec& names) {
  if (!names.result.empty()) return py::none();
  const std::vector<const char*> fields(names.output_names.begin(), names.output_names.end());
  return DefineNamedTuple(module, names.outputs_class, fields);
}

}  // namespace

Caller::Caller(py::module_& module, const MethodSpec& names, const ProgramSpec& spec,
               const ErrorTypes& errors)
    : names_(names),
      spec_(spec),
      errors_(errors),
      outputs_type_(DefineOutputs(module, names)),
      result_(module, names.result) {}

py::object Caller::Call(const Model& model, const RunOptions& options, const py::args& args,
                        const py::kwargs& kwargs) const {
  return ToResult(Run(model, options, args, kwargs), options);
}

py::object Caller::ToResult(std::vector<Tensor> tensors, const RunOptions& options) const {
  if (!names_.result.empty()) return result_.Make(std::move(tensors), options);
  return MakeNamedTuple(outputs_type_, ToTuple(std::move(tensors), options));
}

py::tuple Caller::CallFlat(const Model& model, const RunOptions& options, const py::args& args,
                           const py::kwargs& kwargs) const {
  return ToTuple(Run(model, options, args, kwargs), options);
}

std::vector<Tensor> Caller::Run(const Model& model, const RunOptions& options, const py::args& args,
                                const py::kwargs& kwargs) const {
  const std::vector<py::object> given =
      Bind(spec_.name, names_.input_names, names_.input_paths, args, kwargs);
  std::vector<BorrowedInput> borrowed(given.size());
  std::vector<TensorView> views;
  views.reserve(given.size());
  const CallDevice device = DeviceOf(model, options);
  for (std::size_t i = 0; i < given.size(); ++i) {
    views.push_back(Borrow(given[i], i, device, borrowed[i]));
  }
  return errors_.Unwrap(WithoutGil([&] { return model.Run(views, options); }));
}

TensorView Caller::Borrow(const py::object& object, std::size_t i, const CallDevice& device,
                          BorrowedInput& borrowed) const {
  const InputSpec& input = spec_.inputs[i];
  if (!object) return input.has_default ? borrowed.Default(input) : TensorView::Missing();
  return BorrowArgument(errors_, {spec_.name, input.name}, input.mutated, object, borrowed, [&] {
    return input.number ? borrowed.BorrowNumber(object, input.dtype)
                        : borrowed.Borrow(object, device);
  });
}

}  // namespace aoti::python
