#include "runtime/core/shim.h"

#include <string_view>
#include <utility>

#include "runtime/core/text.h"

// Says why the last call of the C ABI on this thread failed. Weak: not every library has it.
extern "C" __attribute__((weak)) const char* torch_exception_get_what_without_backtrace();

namespace aoti::internal {
namespace {

Error Failed(const char* function) { return {ErrorCode::kInternal, StrCat(function, " failed")}; }

// Cuts `text` off where `mark` begins.
std::string_view Before(std::string_view text, std::string_view mark) {
  return text.substr(0, text.find(mark));
}

}  // namespace

std::int32_t ShimDType(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return aoti_torch_dtype_uint8();
    case DType::kInt8:
      return aoti_torch_dtype_int8();
    case DType::kInt16:
      return aoti_torch_dtype_int16();
    case DType::kInt32:
      return aoti_torch_dtype_int32();
    case DType::kInt64:
      return aoti_torch_dtype_int64();
    case DType::kFloat16:
      return aoti_torch_dtype_float16();
    case DType::kFloat32:
      return aoti_torch_dtype_float32();
    case DType::kFloat64:
      return aoti_torch_dtype_float64();
    case DType::kComplex64:
      return aoti_torch_dtype_complex64();
    case DType::kBool:
      return aoti_torch_dtype_bool();
    case DType::kBFloat16:
      return aoti_torch_dtype_bfloat16();
  }
  return -1;
}

Result<OwnedHandle> BorrowMemory(void* data, DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides, std::int64_t offset) {
  AtenTensorHandle handle = nullptr;
  const AOTITorchError status = aoti_torch_create_tensor_from_blob(
      data, static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), offset,
      ShimDType(dtype), aoti_torch_device_type_cpu(), /*device_index=*/0, &handle);
  if (status != AOTI_TORCH_SUCCESS) return Failed("aoti_torch_create_tensor_from_blob");
  return OwnedHandle(handle);
}

Result<HandleInfo> Inspect(AtenTensorHandle handle) {
  HandleInfo info{};
  std::int64_t rank = 0;
  std::int64_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  if (aoti_torch_get_data_ptr(handle, &info.data) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_data_ptr");
  }
  if (aoti_torch_get_dtype(handle, &info.dtype) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_dtype");
  }
  if (aoti_torch_get_dim(handle, &rank) != AOTI_TORCH_SUCCESS) return Failed("aoti_torch_get_dim");
  if (aoti_torch_get_sizes(handle, &sizes) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_sizes");
  }
  if (aoti_torch_get_strides(handle, &strides) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_strides");
  }
  info.sizes = {sizes, static_cast<std::size_t>(rank)};
  info.strides = strides;
  return info;
}

Tensor AdoptHandle(OwnedHandle handle, const HandleInfo& info, DType dtype) {
  return Tensor::Adopt(
      info.data, dtype, {info.sizes.begin(), info.sizes.end()}, handle.release(),
      [](void* owner) { aoti_torch_delete_tensor_object(static_cast<AtenTensorHandle>(owner)); });
}

std::string DescribeException(const std::exception& exception) {
  // torch appends a C++ backtrace to its own exceptions.
  const std::string_view what = Before(exception.what(), "\nException raised from");
  // Generated code throws this where a function of the C ABI failed, and the cause is kept
  // elsewhere: "aoti_torch_cpu_mm_out(...) API call failed at <file>, line 12".
  const std::string_view call = Before(what, " API call failed at ");
  if (call.size() == what.size()) return std::string(what);
  const std::string_view function = Before(call, "(");
  const char* cause = torch_exception_get_what_without_backtrace == nullptr
                          ? nullptr
                          : torch_exception_get_what_without_backtrace();
  if (cause == nullptr) return StrCat(function, " failed");
  return StrCat(Before(cause, "\nException raised from"), " (in ", function, ")");
}

std::string ShimVersion() {
  // One byte each from the top: major, minor, patch.
  const std::uint64_t version = aoti_torch_abi_version();
  return StrCat(version >> 56, ".", (version >> 48) & 0xff, ".", (version >> 40) & 0xff);
}

}  // namespace aoti::internal
