#include "runtime/python/signature.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/python/seal.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

struct Signature {
  Signature(const MethodSpec& names, const ProgramSpec& spec);
  // Of a function with variants: what any of them takes and returns.
  Signature(const FunctionNames& names, const FunctionSpec& function,
            std::span<const MethodSpec> methods, std::span<const ProgramSpec* const> specs);

  py::dict inputs;
  py::dict outputs;
  py::dict dims;
  py::object provenance = py::none();
  py::dict variants;
};

std::string ShapeOf(const OutputSpec& output) {
  std::string text;
  for (const char* size : output.sizes) {
    if (!text.empty()) text += ", ";
    text += size;
  }
  return StrCat(output.dtype, "[", text, "]");
}

Signature::Signature(const MethodSpec& names, const ProgramSpec& spec) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    inputs[names.input_names[i]] = internal::TypeText(spec.inputs[i]);
  }
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    outputs[names.output_names[i]] = ShapeOf(spec.outputs[i]);
  }
  for (const DimSpec& dim : spec.dims) dims[dim.name] = py::make_tuple(dim.min, dim.max);
  const std::string_view text = spec.provenance();
  if (!text.empty()) {
    provenance = py::module_::import("json").attr("loads")(py::str(text.data(), text.size()));
  }
}

class PyMethod {
 public:
  PyMethod(const char* name, const char* shown, Signature signature)
      : name_(name), shown_(shown), signature_(std::move(signature)) {}

  py::dict Inputs() const { return signature_.inputs; }
  py::dict Outputs() const { return signature_.outputs; }
  py::dict Dims() const { return signature_.dims; }
  py::object Provenance() const { return signature_.provenance; }
  py::dict Variants() const { return signature_.variants; }

  std::string Repr() const { return StrCat("<Method ", shown_, ">"); }

  // Models of PyTorch are called so; here the weights have to be loaded first.
  py::object Call(const py::args&, const py::kwargs&) const {
    throw py::type_error(StrCat(shown_, ": a method of a loaded model: call load() first, then ",
                                name_, "() of what it returns"));
  }

 private:
  const char* name_;
  const char* shown_;
  Signature signature_;
};

// Adds `text` to what a dict of texts has under the key.
void Add(py::dict& texts, const char* key, const std::string& text) {
  if (!texts.contains(key)) {
    texts[key] = text;
    return;
  }
  const auto known = py::cast<std::string>(texts[key]);
  if (StrCat(" | ", known, " | ").find(StrCat(" | ", text, " | ")) == std::string::npos) {
    texts[key] = StrCat(known, " | ", text);
  }
}

Signature::Signature(const FunctionNames& names, const FunctionSpec& function,
                     std::span<const MethodSpec> methods,
                     std::span<const ProgramSpec* const> specs) {
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    inputs[names.input_names[i]] = function.arguments[i].text;
  }
  for (const VariantSpec& variant : function.variants) {
    const auto index = static_cast<std::size_t>(variant.program);
    const Signature own(methods[index], *specs[index]);
    for (std::size_t i = 0; i < specs[index]->outputs.size(); ++i) {
      Add(outputs, methods[index].output_names[i], ShapeOf(specs[index]->outputs[i]));
    }
    for (const DimSpec& dim : specs[index]->dims) {
      std::int64_t low = dim.min;
      std::int64_t high = dim.max;
      if (dims.contains(dim.name)) {
        const auto known = py::cast<py::tuple>(dims[dim.name]);
        low = std::min(low, py::cast<std::int64_t>(known[0]));
        high = std::max(high, py::cast<std::int64_t>(known[1]));
      }
      dims[dim.name] = py::make_tuple(low, high);
    }
    variants[variant.name] = py::cast(PyMethod(names.name, specs[index]->name, own));
  }
}

}  // namespace

void DefineSignature(py::module_& module, const MethodSpec& names, const ProgramSpec& spec) {
  const Signature signature(names, spec);
  module.attr("inputs") = signature.inputs;
  module.attr("outputs") = signature.outputs;
  module.attr("dims") = signature.dims;
  if (!signature.provenance.is_none()) module.attr("__provenance__") = signature.provenance;
}

void DefineMethodClass(py::module_& module) {
  py::class_<PyMethod> method(module, "Method", py::module_local(), py::is_final(),
                              "What a method takes and returns, and what it was made of.");
  method.def_property_readonly("inputs", Method(&PyMethod::Inputs))
      .def_property_readonly("outputs", Method(&PyMethod::Outputs))
      .def_property_readonly("dims", Method(&PyMethod::Dims))
      .def_property_readonly("__provenance__", Method(&PyMethod::Provenance))
      .def_property_readonly("variants", Method(&PyMethod::Variants))
      .def("__call__", Method(&PyMethod::Call))
      .def("__repr__", Method(&PyMethod::Repr));
  Seal(method, "a Method can't be made, copied or pickled: take that of the model's module");
}

void DefineMethod(py::module_& module, const MethodSpec& names, const ProgramSpec& spec) {
  module.attr(names.name) = py::cast(PyMethod(names.name, spec.name, Signature(names, spec)));
}

void DefineFunction(py::module_& module, const FunctionNames& names, const FunctionSpec& function,
                    std::span<const MethodSpec> methods,
                    std::span<const ProgramSpec* const> specs) {
  Signature signature(names, function, methods, specs);
  if (!names.single) {
    module.attr(names.name) = py::cast(PyMethod(names.name, function.name, std::move(signature)));
    return;
  }
  module.attr("inputs") = signature.inputs;
  module.attr("outputs") = signature.outputs;
  module.attr("dims") = signature.dims;
  module.attr("variants") = signature.variants;
}

}  // namespace aoti::python
