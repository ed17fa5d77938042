#include "runtime/python/variants.h"

#include <cstring>
#include <utility>

#include "runtime/python/arguments.h"
#include "runtime/python/bind.h"
#include "runtime/python/gil.h"
#include "runtime/python/outputs.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using Kind = Argument::Kind;

bool IsNumber(const py::object& object, Kind kind) {
  const PyNumberMethods* const methods = Py_TYPE(object.ptr())->tp_as_number;
  if (methods == nullptr) return false;
  if (kind == Kind::kInt) return methods->nb_index != nullptr;
  return kind == Kind::kFloat && (methods->nb_index != nullptr || methods->nb_float != nullptr);
}

}  // namespace

VariantCaller::VariantCaller(const FunctionNames& names, const FunctionSpec& function,
                             const std::vector<Caller>& callers,
                             std::span<const ProgramSpec* const> programs,
                             const py::object& explanation, const ErrorTypes& errors)
    : names_(names),
      function_(function),
      callers_(callers),
      programs_(programs),
      explanation_(explanation),
      errors_(errors),
      facts_(function.arguments.size()) {
  for (const VariantSpec& variant : function.variants) {
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const std::int32_t input = variant.rules[i].input;
      if (input < 0) continue;
      const InputSpec& spec = programs[static_cast<std::size_t>(variant.program)]
                                  ->inputs[static_cast<std::size_t>(input)];
      facts_[i].takes_tensor = facts_[i].takes_tensor || !spec.number;
      facts_[i].mutated = facts_[i].mutated || spec.mutated;
    }
  }
}

template <typename Function>
auto VariantCaller::WithArguments(const CallDevice& device, const py::args& args,
                                  const py::kwargs& kwargs, const Function& function) const {
  const std::vector<py::object> given =
      Bind(function_.name, names_.input_names, names_.input_paths, args, kwargs);
  std::vector<Borrowed> borrowed(given.size());
  std::vector<Argument> arguments;
  arguments.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    arguments.push_back(ToArgument(given[i], i, device, borrowed[i]));
  }
  return WithoutGil([&] { return function(std::span<const Argument>(arguments)); });
}

Argument VariantCaller::ToArgument(const py::object& object, std::size_t i,
                                   const CallDevice& device, Borrowed& borrowed) const {
  const ArgumentSpec& spec = function_.arguments[i];
  if (!object) return spec.default_value;
  if (object.is_none()) return Argument::None();
  if (spec.value_kind == Kind::kString && PyUnicode_Check(object.ptr()) != 0) {
    borrowed.text = FromStr(object);
    return Argument::String(borrowed.text);
  }
  if (spec.value_kind == Kind::kBool && PyBool_Check(object.ptr()) != 0) {
    return Argument::Bool(object.ptr() == Py_True);
  }
  const ArgumentPlace place = {function_.name, spec.name};
  const auto borrow = [&](const auto& function) {
    return BorrowArgument(errors_, place, facts_[i].mutated, object, borrowed.input, function);
  };
  // NumPy's scalars are numbers, and have buffers as tensors do.
  if (IsNumber(object, spec.value_kind) &&
      !(facts_[i].takes_tensor && PyObject_CheckBuffer(object.ptr()) != 0)) {
    const bool is_int = spec.value_kind == Kind::kInt;
    const TensorView view = borrow([&] {
      return borrowed.input.BorrowNumber(object, is_int ? DType::kInt64 : DType::kFloat64);
    });
    Argument argument = is_int ? Argument::Int(0) : Argument::Float(0);
    std::memcpy(is_int ? static_cast<void*>(&argument.integer) : &argument.real, view.data, 8);
    return argument;
  }
  if (!facts_[i].takes_tensor) {
    place.Refuse(errors_, {ErrorCode::kInvalidArgument,
                           internal::StrCat("got ", TypeName(object), ", must be ", spec.text)});
  }
  return {.kind = Kind::kTensor,
          .tensor = borrow([&] { return borrowed.input.Borrow(object, device); })};
}

py::object VariantCaller::Call(std::span<const Model> models, const RunOptions& options,
                               const py::args& args, const py::kwargs& kwargs) const {
  auto ran = Run(models, options, args, kwargs);
  const auto program = static_cast<std::size_t>(function_.variants[ran.variant].program);
  return callers_[program].ToResult(std::move(ran.outputs), options);
}

py::tuple VariantCaller::CallFlat(std::span<const Model> models, const RunOptions& options,
                                  const py::args& args, const py::kwargs& kwargs) const {
  return ToTuple(Run(models, options, args, kwargs).outputs, options);
}

VariantOutputs VariantCaller::Run(std::span<const Model> models, const RunOptions& options,
                                  const py::args& args, const py::kwargs& kwargs) const {
  const CallDevice device = DeviceOf(models.front(), options);
  const auto run = [&](std::span<const Argument> arguments) {
    return RunVariant(function_, models, arguments, options);
  };
  return errors_.Unwrap(WithArguments(device, args, kwargs, run));
}

py::object VariantCaller::Explain(const CallDevice& device, const py::args& args,
                                  const py::kwargs& kwargs) const {
  const auto explain = [&](std::span<const Argument> arguments) {
    return aoti::Explain(function_, programs_, arguments);
  };
  const Explanation found = WithArguments(device, args, kwargs, explain);
  py::dict refused;
  for (const Explanation::Refusal& refusal : found.refusals) {
    refused[refusal.variant] = refusal.reason;
  }
  py::object variant = py::none();
  if (found.variant != nullptr) variant = py::str(found.variant);
  return MakeNamedTuple(explanation_, py::make_tuple(variant, refused));
}

}  // namespace aoti::python
