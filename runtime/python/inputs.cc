#include "runtime/python/inputs.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "aoti/dlpack.h"
#include "runtime/core/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

Error Invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string TypeName(const py::object& object) { return Py_TYPE(object.ptr())->tp_name; }

// The DType of a format of Python's struct module; nothing for one that models don't take.
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
  if (text == "Zf") return DType::kComplex64;
  if (text.size() != 1) return std::nullopt;
  switch (text[0]) {
    case '?':
      return DType::kBool;
    case 'B':
      return DType::kUInt8;
    case 'e':
      return DType::kFloat16;
    case 'f':
      return DType::kFloat32;
    case 'd':
      return DType::kFloat64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      // Their sizes depend on the platform and on the byte order's mark.
      switch (item_size) {
        case 1:
          return DType::kInt8;
        case 2:
          return DType::kInt16;
        case 4:
          return DType::kInt32;
        case 8:
          return DType::kInt64;
        default:
          return std::nullopt;
      }
    default:
      return std::nullopt;
  }
}

// NumPy's name of the elements' type, or else the buffer's own.
std::string ElementType(const py::object& object, const Py_buffer& buffer) {
  if (py::hasattr(object, "dtype")) return py::str(object.attr("dtype")).cast<std::string>();
  return StrCat("\"", buffer.format == nullptr ? "B" : buffer.format, "\"");
}

// ml_dtypes' bfloat16 arrays: NumPy can't export their buffer.
bool IsBFloat16Array(const py::object& object) {
  if (!py::hasattr(object, "dtype") || !py::hasattr(object, "view")) return false;
  const py::object dtype = object.attr("dtype");
  return py::hasattr(dtype, "name") && py::str(dtype.attr("name")).equal(py::str("bfloat16"));
}

}  // namespace

BorrowedInput::~BorrowedInput() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

Result<TensorView> BorrowedInput::Borrow(const py::object& object) {
  try {
    const bool has_dlpack = py::hasattr(object, "__dlpack__");
    if (PyObject_CheckBuffer(object.ptr())) {
      if (!IsBFloat16Array(object)) return BorrowBuffer(object);
      auto view = BorrowBuffer(object.attr("view")("int16"));
      if (view.ok()) view->dtype = DType::kBFloat16;
      return view;
    }
    if (has_dlpack) return BorrowDLPack(object);
  } catch (py::error_already_set& error) {
    // Such as torch's refusal to export a tensor that requires grad.
    return Invalid(py::str(error.value()).cast<std::string>());
  }
  return Invalid(StrCat("got ", TypeName(object),
                        ", must be a NumPy array or an object with __dlpack__() or a buffer"));
}

Result<TensorView> BorrowedInput::BorrowBuffer(const py::object& object) {
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) {
    throw py::error_already_set();
  }
  has_buffer_ = true;
  const auto dtype = FromFormat(buffer_.format, buffer_.itemsize);
  if (!dtype) {
    return Error(ErrorCode::kWrongDType,
                 StrCat("dtype is ", ElementType(object, buffer_), ", which no model takes"));
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

Result<TensorView> BorrowedInput::BorrowDLPack(const py::object& object) {
  // Asked first: a library may refuse to export what is on another device, with a less clear
  // message.
  if (py::hasattr(object, "__dlpack_device__")) {
    const auto device = object.attr("__dlpack_device__")().cast<std::pair<int, int>>();
    const dlpack::DLTensor probe{.data = nullptr,
                                 .device = {device.first, device.second},
                                 .ndim = 0,
                                 .dtype = {dlpack::kDLFloat, 32, 1},
                                 .shape = nullptr,
                                 .strides = nullptr,
                                 .byte_offset = 0};
    const auto checked = ViewOfDLPack(probe, /*read_only=*/true);
    if (!checked.ok()) return checked.error();
  }
  const py::object export_function = object.attr("__dlpack__");
  try {
    keep_alive_ = export_function(py::arg("max_version") = py::make_tuple(1, 0));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    keep_alive_ = export_function();  // a library of before DLPack 1.0
  }
  // The capsule is not consumed: it owns the export, and frees it when it dies with this object.
  if (PyCapsule_IsValid(keep_alive_.ptr(), "dltensor_versioned") != 0) {
    const auto* managed = static_cast<const dlpack::DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(keep_alive_.ptr(), "dltensor_versioned"));
    if (managed->version.major != dlpack::kVersion.major) {
      return Invalid(StrCat("exported by DLPack ", managed->version.major, ".",
                            managed->version.minor, ", must be 1.x"));
    }
    return ViewOfDLPack(managed->dl_tensor, (managed->flags & dlpack::kFlagReadOnly) != 0);
  }
  if (PyCapsule_IsValid(keep_alive_.ptr(), "dltensor") != 0) {
    const auto* managed = static_cast<const dlpack::DLManagedTensor*>(
        PyCapsule_GetPointer(keep_alive_.ptr(), "dltensor"));
    return ViewOfDLPack(managed->dl_tensor, /*read_only=*/false);
  }
  return Invalid(StrCat(TypeName(object), ".__dlpack__() returned no DLPack capsule"));
}

}  // namespace aoti::python
