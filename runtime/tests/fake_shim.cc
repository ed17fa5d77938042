#include "runtime/tests/fake_shim.h"

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/core/shim.h"

namespace aoti::testing {
namespace {

std::atomic<int> g_live_tensors = 0;
std::uint64_t g_version = std::uint64_t{2} << 56 | std::uint64_t{13} << 48;
std::span<const std::byte> g_last_packed;
thread_local std::string g_last_error;
thread_local bool g_grad_mode = true;

std::optional<DType> FromNumber(std::int32_t number) {
  for (const DType dtype :
       {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16,
        DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kBool, DType::kBFloat16}) {
    if (internal::ShimDType(dtype) == number) return dtype;
  }
  return std::nullopt;
}

AtenTensorHandle ToHandle(FakeTensor tensor) {
  ++g_live_tensors;
  return reinterpret_cast<AtenTensorHandle>(new FakeTensor(std::move(tensor)));
}

AOTITorchError CreateFromBlob(void* data, std::int64_t rank, const std::int64_t* sizes,
                              const std::int64_t* strides, std::int64_t offset, std::int32_t dtype,
                              std::int32_t device_type, std::int32_t, AtenTensorHandle* result) {
  const auto type = FromNumber(dtype);
  if (data == nullptr || device_type != 0 || !type) return AOTI_TORCH_FAILURE;
  char* first = static_cast<char*>(data) + offset * static_cast<std::int64_t>(SizeOf(*type));
  *result = NewView(first, *type, {sizes, sizes + rank}, {strides, strides + rank});
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError DeleteTensor(AtenTensorHandle tensor) {
  delete &Get(tensor);
  --g_live_tensors;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError GetData(AtenTensorHandle tensor, void** data) {
  *data = Get(tensor).data;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError GetDType(AtenTensorHandle tensor, std::int32_t* dtype) {
  *dtype = internal::ShimDType(Get(tensor).dtype);
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError GetDim(AtenTensorHandle tensor, std::int64_t* dim) {
  *dim = static_cast<std::int64_t>(Get(tensor).sizes.size());
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError GetSizes(AtenTensorHandle tensor, std::int64_t** sizes) {
  *sizes = Get(tensor).sizes.data();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError GetStrides(AtenTensorHandle tensor, std::int64_t** strides) {
  *strides = Get(tensor).strides.data();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError SetPacked(AtenTensorHandle tensor, const char* kind, const void* data,
                         std::size_t bytes) {
  Get(tensor).packed_kind = kind;
  Get(tensor).packed = {static_cast<const std::byte*>(data), bytes};
  g_last_packed = Get(tensor).packed;
  return AOTI_TORCH_SUCCESS;
}

}  // namespace

FakeTensor& Get(AtenTensorHandle handle) { return *reinterpret_cast<FakeTensor*>(handle); }

AtenTensorHandle NewTensor(DType dtype, std::vector<std::int64_t> sizes) {
  FakeTensor tensor{.data = nullptr,
                    .dtype = dtype,
                    .sizes = std::move(sizes),
                    .strides = {},
                    .owned = {},
                    .packed = {}};
  tensor.strides.resize(tensor.sizes.size());
  std::int64_t numel = 1;
  for (std::size_t d = tensor.sizes.size(); d-- > 0;) {
    tensor.strides[d] = numel;
    numel *= tensor.sizes[d];
  }
  tensor.owned.resize(static_cast<std::size_t>(numel) * SizeOf(dtype));
  tensor.data = tensor.owned.data();
  return ToHandle(std::move(tensor));
}

AtenTensorHandle NewView(void* data, DType dtype, std::vector<std::int64_t> sizes,
                         std::vector<std::int64_t> strides) {
  return ToHandle({.data = data,
                   .dtype = dtype,
                   .sizes = std::move(sizes),
                   .strides = std::move(strides),
                   .owned = {},
                   .packed = {}});
}

std::span<const std::byte> LastPacked() { return g_last_packed; }

void ForgetPacked() { g_last_packed = {}; }

int LiveTensors() { return g_live_tensors; }

void SetVersion(int major, int minor, int patch) {
  g_version = static_cast<std::uint64_t>(major) << 56 | static_cast<std::uint64_t>(minor) << 48 |
              static_cast<std::uint64_t>(patch) << 40;
}

void SetLastError(std::string text) { g_last_error = std::move(text); }

const internal::ShimFunctions& FakeShim() {
  static constexpr internal::ShimFunctions kFunctions = {
      .abi_version = [] { return g_version; },
      .create_tensor_from_blob = &CreateFromBlob,
      .delete_tensor_object = &DeleteTensor,
      .get_data_ptr = &GetData,
      .get_dtype = &GetDType,
      .get_dim = &GetDim,
      .get_sizes = &GetSizes,
      .get_strides = &GetStrides,
      .get_device_type = nullptr,
      .grad_mode_is_enabled = [] { return g_grad_mode; },
      .grad_mode_set_enabled = [](bool enabled) { g_grad_mode = enabled; },
      .release = [](void* tensor) { DeleteTensor(static_cast<AtenTensorHandle>(tensor)); },
      .last_error = [] { return g_last_error.c_str(); },
      .set_packed = &SetPacked,
      .manual_seed = nullptr,
  };
  return kFunctions;
}

}  // namespace aoti::testing
