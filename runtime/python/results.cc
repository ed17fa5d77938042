#include "runtime/python/results.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <utility>

#include "aoti/dtype.h"
#include "runtime/python/gil.h"
#include "runtime/python/outputs.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

py::object Number(const Tensor& tensor) {
  const void* data = tensor.data();
  switch (tensor.dtype()) {
    case DType::kBool:
      return py::bool_(*static_cast<const bool*>(data));
    case DType::kInt64:
      return py::int_(*static_cast<const std::int64_t*>(data));
    default:
      return py::float_(*static_cast<const double*>(data));
  }
}

py::object KeyOf(const ResultNode& node) {
  const py::str text(node.key);
  return node.int_key ? py::object(py::int_(text)) : py::object(text);
}

}  // namespace

py::object MakeNamedTuple(const py::object& type, const py::tuple& fields) {
  auto* const python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  const py::tuple args = py::make_tuple(fields);
  PyObject* object =
      Anchored([&] { return PyTuple_Type.tp_new(python_type, args.ptr(), nullptr); });
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object DefineNamedTuple(py::module_& module, const char* name,
                            const std::vector<const char*>& fields) {
  py::list names;
  for (const char* field : fields) names.append(field);
  py::object type =
      py::module_::import("collections")
          .attr("namedtuple")(name, names, py::arg("module") = module.attr("__name__"));
  module.attr(name) = type;
  return type;
}

ResultMaker::ResultMaker(py::module_& module, std::span<const ResultNode> nodes) : nodes_(nodes) {
  std::size_t next = 0;
  if (!nodes.empty()) Define(module, next);
}

void ResultMaker::Define(py::module_& module, std::size_t& next) {
  const ResultNode& node = nodes_[next++];
  if (!node.IsContainer()) return;
  std::vector<const char*> fields;
  for (std::int32_t i = 0; i < node.number; ++i) {
    fields.push_back(nodes_[next].key);
    Define(module, next);
  }
  // Equal objects in several places have one class, also those of several methods.
  if (node.kind == ResultKind::kObject && !types_.contains(node.text)) {
    types_[node.text] = py::hasattr(module, node.text)
                            ? py::object(module.attr(node.text))
                            : DefineNamedTuple(module, node.text, fields);
  }
}

py::object ResultMaker::Make(std::vector<Tensor> outputs, const RunOptions& options) const {
  std::size_t next = 0;
  return Make(next, outputs, options);
}

py::object ResultMaker::Make(std::size_t& next, std::vector<Tensor>& outputs,
                             const RunOptions& options) const {
  const ResultNode& node = nodes_[next++];
  const auto count = static_cast<std::size_t>(node.number);
  switch (node.kind) {
    case ResultKind::kTensor:
      return ToPython(std::move(outputs[count]), options);
    case ResultKind::kNumber:
      return Number(outputs[count]);
    case ResultKind::kNone:
      return py::none();
    case ResultKind::kBool:
      return py::bool_(node.text[0] == 'T');
    case ResultKind::kInt:
      return py::int_(py::str(node.text));
    case ResultKind::kFloat:
      return py::float_(py::str(node.text));
    case ResultKind::kStr:
      return py::str(node.text);
    case ResultKind::kDict: {
      py::dict dict;
      for (std::size_t i = 0; i < count; ++i) {
        const py::object key = KeyOf(nodes_[next]);
        dict[key] = Make(next, outputs, options);
      }
      return dict;
    }
    default:
      break;
  }
  py::tuple items(count);
  for (std::size_t i = 0; i < count; ++i) items[i] = Make(next, outputs, options);
  if (node.kind == ResultKind::kList) return py::list(items);
  return node.kind == ResultKind::kTuple ? items : MakeNamedTuple(types_.at(node.text), items);
}

}  // namespace aoti::python
