#include "aoti/tensor.h"

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "aoti/dlpack.h"
#include "aoti/tensor_view.h"
#include "runtime/tests/check.h"

namespace aoti {
namespace {

int g_deleted = 0;

Tensor MakeTensor(std::vector<std::int64_t> sizes) {
  auto* memory = new std::vector<float>{0, 1, 2, 3, 4, 5};
  return Tensor::Adopt(memory->data(), DType::kFloat32, std::move(sizes), memory, [](void* owner) {
    ++g_deleted;
    delete static_cast<std::vector<float>*>(owner);
  });
}

TEST(OwnsItsMemory) {
  g_deleted = 0;
  {
    Tensor a = MakeTensor({2, 3});
    Tensor b = std::move(a);
    CHECK_TRUE(a.data() == nullptr && a.sizes().empty());  // NOLINT(bugprone-use-after-move)
    CHECK_EQ(b.numel(), 6);
    CHECK_EQ(g_deleted, 0);
    b = MakeTensor({6});
    CHECK_EQ(g_deleted, 1);
    CHECK_EQ(b.rank(), 1U);
  }
  CHECK_EQ(g_deleted, 2);
  static_assert(!std::is_copy_constructible_v<Tensor>);
}

TEST(TypedTensorIndexes) {
  TypedTensor<float, 2> tensor(MakeTensor({2, 3}));
  CHECK_EQ(tensor(1, 2), 5.0F);
  tensor(0, 1) = 9;
  CHECK_EQ(std::as_const(tensor).span()[1], 9.0F);
  CHECK_EQ(tensor.size(1), 3);
  CHECK_TRUE((tensor.sizes() == std::array<std::int64_t, 2>{2, 3}));
  const TensorRef<const float, 2> next_input = tensor;
  CHECK_TRUE(next_input.data() == tensor.data());
  CHECK_EQ(next_input.size(1), 3);
}

TEST(MovedFromTensorsHaveNoElements) {
  TypedTensor<float, 2> tensor(MakeTensor({2, 3}));
  const TypedTensor<float, 2> other = std::move(tensor);
  CHECK_EQ(other.numel(), 6);
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK_EQ(tensor.numel(), 0);
  CHECK_EQ(tensor.size(1), 0);
  CHECK_TRUE(tensor.span().empty());
  // NOLINTEND(bugprone-use-after-move)
}

TEST(ExportsDLPack) {
  g_deleted = 0;
  dlpack::DLManagedTensor* managed = MakeTensor({2, 3}).ToDLPack();
  const dlpack::DLTensor& tensor = managed->dl_tensor;
  CHECK_EQ(tensor.ndim, 2);
  CHECK_EQ(tensor.shape[1], 3);
  CHECK_EQ(tensor.strides[0], 3);
  CHECK_EQ(static_cast<int>(tensor.dtype.code), static_cast<int>(dlpack::kDLFloat));
  CHECK_EQ(static_cast<int>(tensor.dtype.bits), 32);
  CHECK_EQ(tensor.device.device_type, dlpack::kDLCPU);
  CHECK_EQ(static_cast<float*>(tensor.data)[5], 5.0F);
  CHECK_EQ(g_deleted, 0);
  managed->deleter(managed);
  CHECK_EQ(g_deleted, 1);

  dlpack::DLManagedTensorVersioned* versioned = MakeTensor({6}).ToDLPackVersioned();
  CHECK_EQ(versioned->version.major, 1U);
  CHECK_EQ(versioned->flags, 0U);
  versioned->deleter(versioned);
  CHECK_EQ(g_deleted, 2);
}

TEST(ImportsDLPack) {
  std::array<std::int64_t, 2> shape = {2, 3};
  std::array<std::int64_t, 2> strides = {1, 2};
  std::array<float, 8> memory{};
  dlpack::DLTensor tensor = {.data = memory.data(),
                             .device = {dlpack::kDLCPU, 0},
                             .ndim = 2,
                             .dtype = {dlpack::kDLFloat, 32, 1},
                             .shape = shape.data(),
                             .strides = strides.data(),
                             .byte_offset = 8};
  const auto view = ViewOfDLPack(tensor, /*read_only=*/true);
  REQUIRE_OK(view);
  CHECK_TRUE(view->data == memory.data() + 2);
  CHECK_TRUE(view->dtype == DType::kFloat32);
  CHECK_EQ(view->sizes[1], 3);
  CHECK_EQ(view->strides[1], 2);
  CHECK_TRUE(view->read_only);

  tensor.strides = nullptr;
  tensor.dtype = {dlpack::kDLBfloat, 16, 1};
  const auto contiguous = ViewOfDLPack(tensor, /*read_only=*/false);
  REQUIRE_OK(contiguous);
  CHECK_TRUE(contiguous->strides.empty());
  CHECK_TRUE(contiguous->dtype == DType::kBFloat16);

  tensor.dtype = {dlpack::kDLFloat, 32, 4};
  CHECK_ERROR(ViewOfDLPack(tensor, true), ErrorCode::kWrongDType,
              "DLPack dtype with code 2, 32 bits and 4 lanes is not supported");
  tensor.device = {2, 1};
  tensor.dtype = {dlpack::kDLFloat, 32, 1};
  const auto on_cuda = ViewOfDLPack(tensor, true);
  REQUIRE_OK(on_cuda);
  CHECK_EQ(on_cuda->cuda_device, 1);
  tensor.device = {10, 1};
  CHECK_ERROR(ViewOfDLPack(tensor, true), ErrorCode::kWrongDevice,
              "device is rocm:1, must be cpu or cuda");
}

TEST(DLPackNamesEveryDType) {
  const struct {
    DType dtype;
    std::uint8_t code;
    std::uint8_t bits;
  } dtypes[] = {
      {DType::kInt8, dlpack::kDLInt, 8},         {DType::kInt16, dlpack::kDLInt, 16},
      {DType::kInt32, dlpack::kDLInt, 32},       {DType::kInt64, dlpack::kDLInt, 64},
      {DType::kUInt8, dlpack::kDLUInt, 8},       {DType::kFloat16, dlpack::kDLFloat, 16},
      {DType::kFloat32, dlpack::kDLFloat, 32},   {DType::kFloat64, dlpack::kDLFloat, 64},
      {DType::kBFloat16, dlpack::kDLBfloat, 16}, {DType::kComplex64, dlpack::kDLComplex, 64},
      {DType::kBool, dlpack::kDLBool, 8},
  };
  for (const auto& [dtype, code, bits] : dtypes) {
    std::complex<double> memory;
    dlpack::DLManagedTensor* managed =
        Tensor::Adopt(&memory, dtype, {1}, nullptr, [](void*) {}).ToDLPack();
    CHECK_EQ(managed->dl_tensor.dtype.code, code);
    CHECK_EQ(managed->dl_tensor.dtype.bits, bits);
    const auto view = ViewOfDLPack(managed->dl_tensor, /*read_only=*/true);
    REQUIRE_OK(view);
    CHECK_TRUE(view->dtype == dtype);
    managed->deleter(managed);
  }
}

// The ways in which callers write inputs.
TEST(TensorRefsAreConstructedFrom) {
  std::vector<std::int64_t> tokens(6);
  const std::vector<std::int64_t> const_tokens(6);
  const std::size_t batch = 2;
  const int seq = 3;

  const TensorRef<const std::int64_t, 2> from_pointer = {tokens.data(), {batch, seq}};
  CHECK_EQ(from_pointer.view().buffer_elements, TensorView::kUnknown);
  CHECK_TRUE(from_pointer.view().read_only);
  const TensorRef<const std::int64_t, 2> from_vector = {const_tokens, {batch, seq}};
  CHECK_EQ(from_vector.view().buffer_elements, 6);
  const TensorRef<std::int64_t, 2> writable = {tokens, {2, 3}};
  CHECK_TRUE(!writable.view().read_only);
  const TensorRef<const std::int64_t, 2> readable = writable;
  CHECK_TRUE(readable.view().read_only && readable.data() == tokens.data());
  const TensorRef<const std::int64_t, 2> strided = {tokens.data(), {2, 3}, {1, 2}};
  CHECK_EQ(strided.view().strides[1], 2);
  const float number = 1;
  const TensorRef<const float, 0> scalar = {&number, {}};
  CHECK_TRUE(scalar.view().sizes.empty() && scalar.has_value());
  const TensorRef<const std::int64_t, 1> one = {tokens, {tokens.size()}};
  CHECK_EQ(one.size(0), 6);
  const TensorRef<const std::int64_t, 2> nothing;
  CHECK_EQ(nothing.view().buffer_elements, TensorView::kMissing);
}

}  // namespace
}  // namespace aoti

int main() { return aoti::testing::RunAllTests(); }
