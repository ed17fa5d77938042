#include "runtime/python/inputs.h"

#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aoti/dlpack.h"
#include "runtime/core/dtype_table.h"
#include "runtime/core/text.h"
#include "runtime/python/gil.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

constexpr char kBuffer[] = "the export of its buffer";

Error Invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

// The DType for a format of Python's struct module; nullopt if models don't support it.
std::optional<DType> FromFormat(const char* format, py::ssize_t item_size) {
  std::string_view text = format == nullptr ? "B" : format;
  const char byte_order = text.empty() ? '\0' : text[0];
  if (std::string_view("@=<>!").find(byte_order) != std::string_view::npos) {
    const bool little = byte_order == '<';
    const bool big = byte_order == '>' || byte_order == '!';
    if (item_size > 1 && (std::endian::native == std::endian::little ? big : little)) {
      return std::nullopt;
    }
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  // The sizes of these formats depend on the platform and on the byte order character.
  const bool is_signed = text.size() == 1 && std::string_view("bhilqn").find(text) != text.npos;
  for (const internal::DTypeFacts& facts : internal::kDTypes) {
    if (is_signed
            ? facts.code == dlpack::kDLInt && static_cast<py::ssize_t>(facts.bytes) == item_size
            : facts.format == text) {
      return facts.dtype;
    }
  }
  return std::nullopt;
}

std::uintptr_t Address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// One of DLPack's integers, each of which is an int in C.
std::optional<int> ToInt(py::handle object) {
  if (PyLong_Check(object.ptr()) == 0) return std::nullopt;
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(object.ptr(), &overflow);
  if (overflow != 0 || !std::in_range<int>(value)) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

BorrowedInput::~BorrowedInput() {
  // Both calls may run Python code.
  Anchored([this] {
    if (has_buffer_) PyBuffer_Release(&buffer_);
    Py_XDECREF(keep_alive_.release().ptr());
    return 0;
  });
}

py::object BorrowedInput::Find(const py::object& object, const char* name) {
  doing_ = name;
  PyObject* found = Anchored([&] { return PyObject_GetAttrString(object.ptr(), name); });
  if (found != nullptr) return py::reinterpret_steal<py::object>(found);
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return {};
}

py::object BorrowedInput::Call(const py::object& function, const char* doing, const py::tuple& args,
                               const py::dict& kwargs) {
  doing_ = doing;
  PyObject* result =
      Anchored([&] { return PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr()); });
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

Result<TensorView> BorrowedInput::Borrow(const py::object& object, const CallDevice& device) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    try {
      return BorrowBuffer(object);
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_ValueError) || !IsBFloat16(object)) {
        doing_ = kBuffer;
        throw;
      }
      return BorrowBFloat16(object);
    }
  }
  if (Find(object, "__dlpack__")) return BorrowDLPack(object, device);
  return Invalid(StrCat("got ", TypeName(object),
                        ", must be a NumPy array or an object with __dlpack__() or a buffer"));
}

Result<TensorView> BorrowedInput::BorrowNumber(const py::object& object, DType dtype) {
  PyNumberMethods* const methods = Py_TYPE(object.ptr())->tp_as_number;
  const bool has_index = methods != nullptr && methods->nb_index != nullptr;
  if (dtype == DType::kFloat64) {
    if (!has_index && (methods == nullptr || methods->nb_float == nullptr)) {
      return Invalid(StrCat("got ", TypeName(object), ", must be a float"));
    }
    doing_ = "__float__()";
    float_ = Anchored([&] { return PyFloat_AsDouble(object.ptr()); });
    if (float_ == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return ViewOfNumber(float_);
  }
  if (!has_index) return Invalid(StrCat("got ", TypeName(object), ", must be an int"));
  doing_ = "__index__()";
  PyObject* index = Anchored([&] { return PyNumber_Index(object.ptr()); });
  if (index == nullptr) throw py::error_already_set();
  const auto number = py::reinterpret_steal<py::object>(index);
  int overflow = 0;
  int_ = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    return Error(ErrorCode::kValueOutOfRange,
                 StrCat("value is ", Repr(number), ", which does not fit into 64 bits"));
  }
  // Not ViewOfNumber(): the number that stands for none is one that a caller may pass.
  return TensorView{.data = &int_, .dtype = DType::kInt64, .sizes = {}, .strides = {}};
}

TensorView BorrowedInput::Default(const InputSpec& input) {
  float_ = input.default_float;
  int_ = input.default_int;
  return input.dtype == DType::kInt64 ? ViewOfNumber(int_) : ViewOfNumber(float_);
}

bool BorrowedInput::IsBFloat16(const py::object& object) {
  const py::object dtype = Find(object, "dtype");
  if (!dtype) return false;
  const py::object name = Find(dtype, "name");
  return name && PyUnicode_Check(name.ptr()) != 0 && FromStr(name) == "bfloat16";
}

Result<TensorView> BorrowedInput::BorrowBFloat16(const py::object& object) {
  const py::object view = Find(object, "view");
  if (!view) return Invalid(StrCat(TypeName(object), " has no view()"));
  auto borrowed = BorrowBuffer(Call(view, "view(\"int16\")", py::make_tuple("int16"), py::dict()));
  if (!borrowed.ok()) return borrowed;
  if (borrowed->dtype != DType::kInt16) {
    return Invalid(StrCat(TypeName(object), ".view(\"int16\") returned elements of ",
                          borrowed->dtype, ", must be int16"));
  }
  borrowed->dtype = DType::kBFloat16;
  return borrowed;
}

Result<TensorView> BorrowedInput::BorrowBuffer(const py::object& object) {
  doing_ = kBuffer;
  if (Anchored([&] { return PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_RECORDS_RO); }) != 0) {
    throw py::error_already_set();
  }
  has_buffer_ = true;
  const auto dtype = FromFormat(buffer_.format, buffer_.itemsize);
  if (!dtype || static_cast<py::ssize_t>(SizeOf(*dtype)) != buffer_.itemsize) {
    return Error(ErrorCode::kWrongDType,
                 StrCat("dtype is ", ElementType(object), ", which is not supported"));
  }
  for (int d = 0; d < buffer_.ndim; ++d) {
    if (buffer_.strides[d] % buffer_.itemsize != 0) {
      return Error(ErrorCode::kWrongStrides,
                   StrCat("stride of dim ", d, " is ", buffer_.strides[d],
                          " bytes, must be a multiple of the element's ", buffer_.itemsize));
    }
    sizes_.push_back(buffer_.shape[d]);
    strides_.push_back(buffer_.strides[d] / buffer_.itemsize);
  }
  return TensorView{.data = buffer_.buf,
                    .dtype = *dtype,
                    .sizes = sizes_,
                    .strides = strides_,
                    .read_only = buffer_.readonly != 0};
}

// NumPy's name of the dtype, or else the format of the buffer.
std::string BorrowedInput::ElementType(const py::object& object) {
  if (const py::object dtype = Find(object, "dtype")) {
    doing_ = "str(dtype)";
    PyObject* text = Anchored([&] { return PyObject_Str(dtype.ptr()); });
    if (text == nullptr) throw py::error_already_set();
    return FromStr(py::reinterpret_steal<py::object>(text));
  }
  return StrCat("\"", buffer_.format == nullptr ? "B" : buffer_.format, "\"");
}

// Checked first: a library may refuse to export a tensor on another device with a less clear
// message.
Result<bool> BorrowedInput::CheckDevice(const py::object& object, const CallDevice& call) {
  const py::object function = Find(object, "__dlpack_device__");
  if (!function) return false;
  const py::object device = Call(function, "__dlpack_device__()", py::tuple(), py::dict());
  std::optional<int> type;
  std::optional<int> number;
  if (PyTuple_Check(device.ptr()) != 0 && PyTuple_GET_SIZE(device.ptr()) == 2) {
    type = ToInt(PyTuple_GET_ITEM(device.ptr(), 0));
    number = ToInt(PyTuple_GET_ITEM(device.ptr(), 1));
  }
  if (!type || !number) {
    return Invalid(StrCat(TypeName(object), ".__dlpack_device__() returned ", Repr(device),
                          ", must be a tuple of two integers, device type and device number"));
  }
  const dlpack::DLTensor probe{.data = nullptr,
                               .device = {*type, *number},
                               .ndim = 0,
                               .dtype = {dlpack::kDLFloat, 32, 1},
                               .shape = nullptr,
                               .strides = nullptr,
                               .byte_offset = 0};
  const auto checked = ViewOfDLPack(probe, /*read_only=*/true);
  if (!checked.ok()) return checked.error();
  const bool on_cuda = checked->cuda_device != TensorView::kCpu;
  if (on_cuda && !call.on_cuda) {
    return Error(ErrorCode::kWrongDevice,
                 StrCat("device is cuda:", checked->cuda_device, ", must be cpu"));
  }
  return on_cuda;
}

Result<TensorView> BorrowedInput::BorrowDLPack(const py::object& object, const CallDevice& device) {
  const auto on_cuda = CheckDevice(object, device);
  if (!on_cuda.ok()) return on_cuda.error();
  const py::object function = Find(object, "__dlpack__");
  py::dict stream;
  if (*on_cuda) {
    // The exporter makes this stream wait for its work. -1: no stream, as a call without one waits
    // for all work on the device.
    stream["stream"] = device.stream == nullptr ? py::int_(-1) : py::int_(Address(device.stream));
  }
  py::dict version = stream.attr("copy")();
  version["max_version"] = py::make_tuple(dlpack::kVersion.major, dlpack::kVersion.minor);
  try {
    keep_alive_ = Call(function, "__dlpack__()", py::tuple(), version);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    // The library may be older than DLPack 1.0, which added this argument.
    keep_alive_ = Call(function, "__dlpack__()", py::tuple(), stream);
  }
  // The capsule is not consumed: it owns the export, and frees it when this object is destroyed.
  if (PyCapsule_IsValid(keep_alive_.ptr(), "dltensor_versioned") != 0) {
    const auto* managed = static_cast<const dlpack::DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(keep_alive_.ptr(), "dltensor_versioned"));
    // Only the version has the same offset in every version of the struct.
    if (managed->version.major != dlpack::kVersion.major) {
      return Invalid(StrCat("exported by DLPack ", managed->version.major, ".",
                            managed->version.minor, ", must be 1.x"));
    }
    is_copy_ = (managed->flags & dlpack::kFlagIsCopied) != 0;
    return ViewOfDLPack(managed->dl_tensor, (managed->flags & dlpack::kFlagReadOnly) != 0);
  }
  if (PyCapsule_IsValid(keep_alive_.ptr(), "dltensor") != 0) {
    const auto* managed = static_cast<const dlpack::DLManagedTensor*>(
        PyCapsule_GetPointer(keep_alive_.ptr(), "dltensor"));
    return ViewOfDLPack(managed->dl_tensor, /*read_only=*/false);
  }
  return Invalid(StrCat(TypeName(object), ".__dlpack__() returned ", Repr(keep_alive_),
                        ", must be a DLPack capsule that has not been consumed"));
}

}  // namespace aoti::python
