#include "runtime/tests/fake_shim.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <atomic>
#include <utility>

namespace aoti::testing {
namespace {

std::atomic<int> g_live_tensors = 0;
std::uint64_t g_version = std::uint64_t{2} << 56 | std::uint64_t{13} << 48;
thread_local std::string g_last_error;
thread_local bool g_grad_mode = true;

AtenTensorHandle ToHandle(FakeTensor tensor) {
  ++g_live_tensors;
  return reinterpret_cast<AtenTensorHandle>(new FakeTensor(std::move(tensor)));
}

}  // namespace

FakeTensor& Get(AtenTensorHandle handle) { return *reinterpret_cast<FakeTensor*>(handle); }

AtenTensorHandle NewTensor(DType dtype, std::vector<std::int64_t> sizes) {
  FakeTensor tensor{
      .data = nullptr, .dtype = dtype, .sizes = std::move(sizes), .strides = {}, .owned = {}};
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
  return ToHandle({data, dtype, std::move(sizes), std::move(strides), {}});
}

int LiveTensors() { return g_live_tensors; }

void SetVersion(int major, int minor, int patch) {
  g_version = static_cast<std::uint64_t>(major) << 56 | static_cast<std::uint64_t>(minor) << 48 |
              static_cast<std::uint64_t>(patch) << 40;
}

void SetLastError(std::string text) { g_last_error = std::move(text); }

}  // namespace aoti::testing

using aoti::DType;
using aoti::testing::Get;

extern "C" {

const char* torch_exception_get_what_without_backtrace() {
  return aoti::testing::g_last_error.c_str();
}

std::uint64_t aoti_torch_abi_version() { return aoti::testing::g_version; }
std::int32_t aoti_torch_device_type_cpu() { return 0; }
bool aoti_torch_grad_mode_is_enabled() { return aoti::testing::g_grad_mode; }
void aoti_torch_grad_mode_set_enabled(bool enabled) { aoti::testing::g_grad_mode = enabled; }

#define FAKE_DTYPE(name, dtype) \
  std::int32_t aoti_torch_dtype_##name() { return static_cast<std::int32_t>(DType::dtype); }
FAKE_DTYPE(uint8, kUInt8)
FAKE_DTYPE(int8, kInt8)
FAKE_DTYPE(int16, kInt16)
FAKE_DTYPE(int32, kInt32)
FAKE_DTYPE(int64, kInt64)
FAKE_DTYPE(float16, kFloat16)
FAKE_DTYPE(float32, kFloat32)
FAKE_DTYPE(float64, kFloat64)
FAKE_DTYPE(complex64, kComplex64)
FAKE_DTYPE(bool, kBool)
FAKE_DTYPE(bfloat16, kBFloat16)
#undef FAKE_DTYPE

AOTITorchError aoti_torch_create_tensor_from_blob(void* data, std::int64_t ndim,
                                                  const std::int64_t* sizes,
                                                  const std::int64_t* strides,
                                                  std::int64_t storage_offset, std::int32_t dtype,
                                                  std::int32_t device_type, std::int32_t,
                                                  AtenTensorHandle* ret) {
  if (data == nullptr || device_type != 0) return AOTI_TORCH_FAILURE;
  const auto type = static_cast<DType>(dtype);
  char* first =
      static_cast<char*>(data) + storage_offset * static_cast<std::int64_t>(aoti::SizeOf(type));
  *ret = aoti::testing::NewView(first, type, {sizes, sizes + ndim}, {strides, strides + ndim});
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  delete &Get(tensor);
  --aoti::testing::g_live_tensors;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** data) {
  *data = Get(tensor).data;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, std::int32_t* dtype) {
  *dtype = static_cast<std::int32_t>(Get(tensor).dtype);
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, std::int64_t* dim) {
  *dim = static_cast<std::int64_t>(Get(tensor).sizes.size());
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, std::int64_t** sizes) {
  *sizes = Get(tensor).sizes.data();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, std::int64_t** strides) {
  *strides = Get(tensor).strides.data();
  return AOTI_TORCH_SUCCESS;
}

}  // extern "C"
