#include "runtime/cuda/python/kernel_arguments.h"

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "aoti/error.h"
#include "aoti/tensor_view.h"
#include "runtime/core/text.h"
#include "runtime/python/gil.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

Error Invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// "scale(grid, x, y, n, *, stream=0)"
std::string Signature(const KernelModule& kernel) {
  std::string text = StrCat(kernel.name, "(");
  if (kernel.grid != nullptr) text += StrCat(kernel.grid, ", ");
  for (const KernelParameter& parameter : kernel.parameters) {
    text += StrCat(parameter.name, ", ");
  }
  return StrCat(text, "*, ", kernel.stream, "=0)");
}

[[noreturn]] void WrongCall(const KernelModule& kernel, const std::string& message) {
  throw py::type_error(StrCat(kernel.label, ": ", message, "; the call is ", Signature(kernel)));
}

Error OutOfRange(const char* type, const py::object& object) {
  return {ErrorCode::kValueOutOfRange,
          StrCat("value is ", Repr(object), ", which does not fit into ", type)};
}

// An int of Python, or what operator.index() takes.
Result<py::object> Index(const py::object& object, std::string_view expected) {
  if (PyIndex_Check(object.ptr()) == 0) {
    return Invalid(StrCat("got ", TypeName(object), ", must be ", expected));
  }
  PyObject* const index = Anchored([&] { return PyNumber_Index(object.ptr()); });
  if (index == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(index);
}

Result<std::int64_t> Signed(const py::object& object, const char* type, int bits,
                            std::string_view expected) {
  const auto index = Index(object, expected);
  if (!index.ok()) return index.error();
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(index->ptr(), &overflow);
  const std::int64_t high = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  if (overflow != 0 || value > high || value < -high - 1) return OutOfRange(type, *index);
  return value;
}

Result<std::uint64_t> Unsigned(const py::object& object, const char* type, int bits,
                               std::string_view expected) {
  const auto index = Index(object, expected);
  if (!index.ok()) return index.error();
  const std::uint64_t value = PyLong_AsUnsignedLongLong(index->ptr());
  if (PyErr_Occurred() != nullptr) {  // negative, or of more than 64 bits
    PyErr_Clear();
    return OutOfRange(type, *index);
  }
  if (value > std::numeric_limits<std::uint64_t>::max() >> (64 - bits)) {
    return OutOfRange(type, *index);
  }
  return value;
}

// A tensor is passed as its address: its sizes and strides are the kernel's business.
Result<KernelValue> Pointer(const KernelParameter& parameter, const py::object& object,
                            const CallDevice& device, int cuda_device, BorrowedInput& borrowed) {
  if (PyLong_Check(object.ptr()) != 0 && PyBool_Check(object.ptr()) == 0) {
    const auto address = Unsigned(object, "an address", 64, "");
    if (!address.ok()) return address.error();
    return KernelValue{.pointer = reinterpret_cast<void*>(*address)};
  }
  if (PyObject_CheckBuffer(object.ptr()) == 0 &&
      Anchored([&] { return PyObject_HasAttrString(object.ptr(), "__dlpack__"); }) == 0) {
    return Invalid(StrCat("got ", TypeName(object), ", must be a tensor on cuda:", cuda_device,
                          ", an object with __dlpack__(), or an address in its memory"));
  }
  if (!parameter.dtype) {
    return Error(ErrorCode::kWrongDType, StrCat("tensors are not taken for ", parameter.type,
                                                ": pass the address, such as tensor.data_ptr()"));
  }
  const auto view = borrowed.Borrow(object, device);
  if (!view.ok()) return view.error();
  if (view->cuda_device != cuda_device) {
    const std::string where =
        view->cuda_device == TensorView::kCpu ? "cpu" : StrCat("cuda:", view->cuda_device);
    return Error(ErrorCode::kWrongDevice, StrCat("device is ", where, ", must be cuda:",
                                                 cuda_device, ", where the kernel is loaded"));
  }
  if (view->dtype != *parameter.dtype) {
    return Error(ErrorCode::kWrongDType,
                 StrCat("dtype is ", view->dtype, ", must be ", *parameter.dtype));
  }
  if (!parameter.read_only && view->read_only) {
    return Error(ErrorCode::kReadOnly, "the tensor is read-only, and the kernel writes to it");
  }
  if (!parameter.read_only && borrowed.IsCopy()) {
    return Error(ErrorCode::kReadOnly, StrCat(TypeName(object),
                                              ".__dlpack__() exports a copy, and the kernel "
                                              "writes to it"));
  }
  return KernelValue{.pointer = const_cast<void*>(view->data)};
}

}  // namespace

KernelCall BindKernelCall(const KernelModule& kernel, const py::args& args,
                          const py::kwargs& kwargs) {
  const std::size_t count = kernel.parameters.size();
  KernelCall call;
  call.arguments.resize(count);
  // Where each positional argument goes, and its name.
  std::vector<std::pair<const char*, py::object*>> places;
  if (kernel.grid != nullptr) places.emplace_back(kernel.grid, &call.grid);
  for (std::size_t i = 0; i < count; ++i) {
    places.emplace_back(kernel.parameters[i].name, &call.arguments[i]);
  }
  if (args.size() > places.size()) {
    WrongCall(kernel, StrCat("got ", args.size(), " positional arguments, must be at most ",
                             places.size()));
  }
  for (std::size_t i = 0; i < args.size(); ++i) *places[i].second = args[i];
  const std::size_t required = places.size();
  places.emplace_back(kernel.stream, &call.stream);
  for (const auto& [key, value] : kwargs) {
    const std::string name = FromStr(key);
    py::object* place = nullptr;
    for (const auto& [known, of_known] : places) {
      if (name == known) place = of_known;
    }
    if (place == nullptr) WrongCall(kernel, StrCat("there is no argument \"", name, "\""));
    if (*place) WrongCall(kernel, StrCat("the argument \"", name, "\" is given twice"));
    *place = py::reinterpret_borrow<py::object>(value);
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!*places[i].second) {
      WrongCall(kernel, StrCat("the argument \"", places[i].first, "\" is missing"));
    }
  }
  return call;
}

Result<KernelValue> ToKernelValue(const KernelParameter& parameter, const py::object& object,
                                  const CallDevice& device, int cuda_device,
                                  BorrowedInput& borrowed) {
  switch (parameter.kind) {
    case KernelKind::kPointer:
      return Pointer(parameter, object, device, cuda_device, borrowed);
    case KernelKind::kSigned: {
      const auto value = Signed(object, parameter.type, parameter.bits, "an int");
      if (!value.ok()) return value.error();
      return KernelValue{.integer = *value};
    }
    case KernelKind::kUnsigned: {
      const auto value = Unsigned(object, parameter.type, parameter.bits, "an int");
      if (!value.ok()) return value.error();
      return KernelValue{.bits = *value};
    }
    case KernelKind::kFloat: {
      const auto number = borrowed.BorrowNumber(object, DType::kFloat64);
      if (!number.ok()) return number.error();
      return KernelValue{.real = *static_cast<const double*>(number->data)};
    }
    case KernelKind::kBool:
      break;
  }
  if (PyBool_Check(object.ptr()) == 0) {
    return Invalid(StrCat("got ", TypeName(object), ", must be a bool"));
  }
  return KernelValue{.truth = object.ptr() == Py_True};
}

Result<std::uintptr_t> ToStream(const py::object& stream) {
  if (!stream) return std::uintptr_t{0};
  return Unsigned(stream, "an address", 64,
                  "the address of a cudaStream_t, such as "
                  "torch.cuda.current_stream().cuda_stream");
}

Result<CudaGrid> ToGrid(const py::object& grid) {
  if (!grid) return CudaGrid{};
  const Error wrong =
      Invalid(StrCat("got ", Repr(grid), ", must be a tuple of one to three ints in 0..",
                     std::numeric_limits<std::int32_t>::max()));
  if (PyTuple_Check(grid.ptr()) == 0) return wrong;
  const auto sizes = py::reinterpret_borrow<py::tuple>(grid);
  if (sizes.empty() || sizes.size() > 3) return wrong;
  std::array<std::uint32_t, 3> programs = {1, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = Signed(sizes[i], "int32", 32, "");
    if (!size.ok() || *size < 0) return wrong;
    programs[i] = static_cast<std::uint32_t>(*size);
  }
  return CudaGrid{programs[0], programs[1], programs[2]};
}

}  // namespace aoti::python
