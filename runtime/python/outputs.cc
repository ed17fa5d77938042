#include "runtime/python/outputs.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/dtype_table.h"
#include "runtime/python/seal.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

// A Tensor that any number of DLPack consumers may share.
class SharedTensor {
 public:
  // stream: the caller's, on which the tensor is computed; null if it is there already.
  SharedTensor(Tensor tensor, void* stream)
      : tensor_(std::make_shared<Tensor>(std::move(tensor))),
        stream_(tensor_->cuda_device() == TensorView::kCpu ? nullptr : stream) {}

  py::tuple Shape() const {
    py::tuple shape(tensor_->rank());
    for (std::size_t d = 0; d < tensor_->rank(); ++d) shape[d] = tensor_->size(d);
    return shape;
  }

  std::string DTypeName() const { return std::string(to_string(tensor_->dtype())); }

  py::capsule Export(const py::object& stream, const std::optional<std::pair<int, int>>& version,
                     const std::optional<std::pair<int, int>>& device,
                     const std::optional<bool>& copy) const {
    if (device && *device != Device()) throw py::buffer_error("the tensor is on " + Place());
    CheckStream(stream);
    if (copy.value_or(false)) throw py::buffer_error("copies are not supported");
    if (version && version->first >= 1) {
      return Capsule(Share().ToDLPackVersioned(), "dltensor_versioned");
    }
    return Capsule(Share().ToDLPack(), "dltensor");
  }

  std::pair<int, int> Device() const {
    if (OnCpu()) return {dlpack::kDLCPU, 0};
    return {dlpack::kDLCUDA, tensor_->cuda_device()};
  }

  // For numpy.asarray(): NumPy has no bfloat16, and float32 represents all of its values.
  py::object ToFloat32Array(const py::object& dtype, const std::optional<bool>& copy) const {
    if (!OnCpu()) {
      throw py::type_error("the tensor is on " + Place() +
                           ": convert it with from_dlpack() of a library for CUDA, or call the "
                           "model without outputs_on_device");
    }
    if (!copy.value_or(true)) {
      throw py::value_error("a bfloat16 tensor can't become a NumPy array without a copy");
    }
    py::array_t<float> array(
        std::vector<py::ssize_t>(tensor_->sizes().begin(), tensor_->sizes().end()));
    const auto* from = static_cast<const BFloat16*>(std::as_const(*tensor_).data());
    for (std::int64_t i = 0; i < tensor_->numel(); ++i) {
      array.mutable_data()[i] = static_cast<float>(from[i]);
    }
    return dtype.is_none() ? py::object(array) : array.attr("astype")(dtype);
  }

  std::string Repr() const {
    return "Tensor(shape=" + py::repr(Shape()).cast<std::string>() + ", dtype=" + DTypeName() +
           (OnCpu() ? "" : ", device=" + Place()) + ")";
  }

 private:
  bool OnCpu() const { return tensor_->cuda_device() == TensorView::kCpu; }

  std::string Place() const {
    return OnCpu() ? "the CPU" : "cuda:" + std::to_string(tensor_->cuda_device());
  }

  // DLPack has the exporter make the consumer's stream wait. Nothing is to wait for after a call
  // without a stream. After one with a stream of the caller's, its work may not be done.
  void CheckStream(const py::object& stream) const {
    if (stream_ == nullptr) return;
    const auto number = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(stream_));
    if (!stream.is_none()) {
      const auto asked = stream.cast<std::int64_t>();
      if (asked == number || asked == -1) return;
    }
    throw py::buffer_error(
        "the tensor is computed on the stream " + std::to_string(number) +
        ", and is exported for that stream alone: make it the current stream of the library that "
        "takes the tensor, or call the model without cuda_stream");
  }

  // A tensor in the same memory, which is freed with its last owner.
  Tensor Share() const {
    auto* owner = new std::shared_ptr<Tensor>(tensor_);
    return Tensor::Adopt(
        tensor_->data(), tensor_->dtype(), {tensor_->sizes().begin(), tensor_->sizes().end()},
        owner, [](void* shared) { delete static_cast<std::shared_ptr<Tensor>*>(shared); },
        tensor_->cuda_device());
  }

  // A consumer renames the capsule and calls the deleter itself.
  template <typename Managed>
  static py::capsule Capsule(Managed* managed, const char* name) {
    PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* self) {
      const char* current = PyCapsule_GetName(self);
      if (current == nullptr || std::string_view(current).substr(0, 5) == "used_") return;
      auto* unused = static_cast<Managed*>(PyCapsule_GetPointer(self, current));
      unused->deleter(unused);
    });
    if (capsule == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::capsule>(capsule);
  }

  std::shared_ptr<Tensor> tensor_;
  void* stream_;
};

const char* NumpyName(DType dtype) {
  const internal::DTypeFacts* facts = internal::FactsOf(dtype);
  if (facts == nullptr || facts->format.empty()) return nullptr;
  return facts->name.data();  // NumPy and torch use the same names
}

}  // namespace

void DefineTensor(py::module_& module) {
  // module_local: a process may load the modules of any number of models.
  py::class_<SharedTensor> tensor(
      module, "Tensor", py::module_local(), py::is_final(),
      "An output whose dtype NumPy lacks, or in the memory of a GPU: convert it with "
      "from_dlpack().");
  tensor.def_property_readonly("shape", Method(&SharedTensor::Shape))
      .def_property_readonly("dtype", Method(&SharedTensor::DTypeName))
      .def("__dlpack__", Method(&SharedTensor::Export), py::kw_only(),
           py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack_device__", Method(&SharedTensor::Device))
      .def("__array__", Method(&SharedTensor::ToFloat32Array), py::arg("dtype") = py::none(),
           py::arg("copy") = py::none())
      .def("__repr__", Method(&SharedTensor::Repr));
  Seal(tensor, "a Tensor can't be made, copied or pickled: convert it with from_dlpack() first");
}

py::object ToPython(Tensor tensor, const RunOptions& options) {
  const char* name = NumpyName(tensor.dtype());
  if (name == nullptr || tensor.cuda_device() != TensorView::kCpu) {
    return py::cast(SharedTensor(std::move(tensor), options.cuda_stream));
  }
  const std::vector<py::ssize_t> shape(tensor.sizes().begin(), tensor.sizes().end());
  const py::dtype dtype(name);
  auto owner = std::make_unique<Tensor>(std::move(tensor));
  void* data = owner->data();
  const py::capsule base(owner.get(), [](void* owned) { delete static_cast<Tensor*>(owned); });
  owner.release();
  return py::array(dtype, shape, data, base);
}

py::tuple ToTuple(std::vector<Tensor> tensors, const RunOptions& options) {
  py::tuple fields(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    fields[i] = ToPython(std::move(tensors[i]), options);
  }
  return fields;
}

}  // namespace aoti::python
