#include <optional>
#include <string>

#include "aoti/tensor_view.h"
#include "runtime/core/dtype_table.h"
#include "runtime/core/text.h"

namespace aoti {
namespace {

std::optional<DType> FromDLDataType(dlpack::DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (const internal::DTypeFacts& facts : internal::kDTypes) {
    if (facts.code == type.code && facts.bytes * 8 == type.bits) return facts.dtype;
  }
  return std::nullopt;
}

// More dimensions than any library supports: a larger ndim means that the tensor is malformed.
constexpr std::int32_t kMostDims = 1024;

std::string DeviceText(dlpack::DLDevice device) {
  const char* name = device.device_type == 2    ? "cuda"
                     : device.device_type == 3  ? "pinned cuda host"
                     : device.device_type == 8  ? "metal"
                     : device.device_type == 10 ? "rocm"
                                                : nullptr;
  if (name != nullptr) return internal::StrCat(name, ":", device.device_id);
  return internal::StrCat("DLPack device type ", device.device_type);
}

}  // namespace

Result<TensorView> ViewOfDLPack(const dlpack::DLTensor& tensor, bool read_only) {
  const bool on_cuda = tensor.device.device_type == dlpack::kDLCUDA && tensor.device.device_id >= 0;
  if (tensor.device.device_type != dlpack::kDLCPU && !on_cuda) {
    return Error(ErrorCode::kWrongDevice, internal::StrCat("device is ", DeviceText(tensor.device),
                                                           ", must be cpu or cuda"));
  }
  const auto dtype = FromDLDataType(tensor.dtype);
  if (!dtype) {
    return Error(
        ErrorCode::kWrongDType,
        internal::StrCat("DLPack dtype with code ", tensor.dtype.code, ", ", tensor.dtype.bits,
                         " bits and ", tensor.dtype.lanes, " lanes is not supported"));
  }
  if (tensor.ndim < 0 || tensor.ndim > kMostDims) {
    return Error(ErrorCode::kWrongRank,
                 internal::StrCat("DLPack ndim is ", tensor.ndim, ", must be in 0..", kMostDims));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 internal::StrCat("DLPack shape is null, must have ", tensor.ndim, " sizes"));
  }
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  TensorView view{.data = nullptr,
                  .dtype = *dtype,
                  .sizes = {tensor.shape, rank},
                  .strides = {},
                  .read_only = read_only};
  if (on_cuda) view.cuda_device = tensor.device.device_id;
  if (tensor.data != nullptr) view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  if (tensor.strides != nullptr) view.strides = {tensor.strides, rank};
  return view;
}

}  // namespace aoti
