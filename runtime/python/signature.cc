#include "runtime/python/signature.h"

#include <cstddef>
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

  py::dict inputs;
  py::dict outputs;
  py::dict dims;
  py::object provenance = py::none();
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
  PyMethod(const MethodSpec& names, const ProgramSpec& spec)
      : names_(names), spec_(spec), signature_(names, spec) {}

  py::dict Inputs() const { return signature_.inputs; }
  py::dict Outputs() const { return signature_.outputs; }
  py::dict Dims() const { return signature_.dims; }
  py::object Provenance() const { return signature_.provenance; }

  std::string Repr() const { return StrCat("<Method ", spec_.name, ">"); }

  // Models of PyTorch are called so; here the weights have to be loaded first.
  py::object Call(const py::args&, const py::kwargs&) const {
    throw py::type_error(StrCat(spec_.name,
                                ": a method of a loaded model: call load() first, then ",
                                names_.name, "() of what it returns"));
  }

 private:
  const MethodSpec& names_;
  const ProgramSpec& spec_;
  Signature signature_;
};

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
      .def("__call__", Method(&PyMethod::Call))
      .def("__repr__", Method(&PyMethod::Repr));
  Seal(method, "a Method can't be made, copied or pickled: take that of the model's module");
}

void DefineMethod(py::module_& module, const MethodSpec& names, const ProgramSpec& spec) {
  module.attr(names.name) = py::cast(PyMethod(names, spec));
}

}  // namespace aoti::python
