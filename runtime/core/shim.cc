#include "runtime/core/shim.h"

#include <string_view>
#include <utility>

#include "runtime/core/dtype_table.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

Error Failed(const char* function) { return {ErrorCode::kInternal, StrCat(function, " failed")}; }

// The part of `text` before `mark`.
std::string_view Before(std::string_view text, std::string_view mark) {
  return text.substr(0, text.find(mark));
}

}  // namespace

std::int32_t ShimDType(DType dtype) {
  return FactsOf(dtype) == nullptr ? -1 : static_cast<std::int32_t>(dtype);
}

Result<OwnedHandle> Shim::BorrowMemory(void* data, DType dtype, std::span<const std::int64_t> sizes,
                                       std::span<const std::int64_t> strides,
                                       std::int64_t offset) const {
  AtenTensorHandle handle = nullptr;
  const AOTITorchError status = functions_->create_tensor_from_blob(
      data, static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), offset,
      ShimDType(dtype), device_.type, device_.index, &handle);
  if (status != AOTI_TORCH_SUCCESS) return Failed("aoti_torch_create_tensor_from_blob");
  return Own(handle);
}

Result<HandleInfo> Shim::Inspect(AtenTensorHandle handle) const {
  HandleInfo info{};
  std::int64_t rank = 0;
  std::int64_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  if (functions_->get_data_ptr(handle, &info.data) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_data_ptr");
  }
  if (functions_->get_dtype(handle, &info.dtype) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_dtype");
  }
  if (functions_->get_dim(handle, &rank) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_dim");
  }
  if (functions_->get_sizes(handle, &sizes) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_sizes");
  }
  if (functions_->get_strides(handle, &strides) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_strides");
  }
  std::int32_t device = 0;
  if (device_.type != 0 && functions_->get_device_type(handle, &device) != AOTI_TORCH_SUCCESS) {
    return Failed("aoti_torch_get_device_type");
  }
  info.on_device = device != 0;
  info.sizes = {sizes, static_cast<std::size_t>(rank)};
  info.strides = strides;
  return info;
}

Tensor Shim::Adopt(OwnedHandle handle, const HandleInfo& info, DType dtype) const {
  return Tensor::Adopt(info.data, dtype, {info.sizes.begin(), info.sizes.end()}, handle.release(),
                       functions_->release, info.on_device ? device_.index : TensorView::kCpu);
}

std::string Shim::Describe(const std::exception& exception) const {
  // torch appends a C++ backtrace to its own exceptions.
  const std::string_view what = Before(exception.what(), "\nException raised from");
  // Generated code throws this if a function of the C ABI failed; the cause is recorded elsewhere:
  // "aoti_torch_cpu_mm_out(...) API call failed at <file>, line 12".
  const std::string_view call = Before(what, " API call failed at ");
  if (call.size() == what.size()) return std::string(what);
  const std::string_view function = Before(call, "(");
  const char* cause = functions_->last_error == nullptr ? nullptr : functions_->last_error();
  if (cause == nullptr) return StrCat(function, " failed");
  return StrCat(Before(cause, "\nException raised from"), " (in ", function, ")");
}

std::string Shim::Version() const {
  // One byte each, beginning with the most significant: major, minor, patch.
  const std::uint64_t version = functions_->abi_version();
  return StrCat(version >> 56, ".", (version >> 48) & 0xff, ".", (version >> 40) & 0xff);
}

}  // namespace aoti::internal
