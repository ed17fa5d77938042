// Owned tensors, which models return.

#ifndef AOTI_TENSOR_H_
#define AOTI_TENSOR_H_

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "aoti/cxx20.h"
#include "aoti/dlpack.h"
#include "aoti/dtype.h"
#include "aoti/tensor_view.h"

namespace aoti {

// A contiguous (row-major) tensor that owns its elements. Move-only. It is in the CPU's memory,
// unless a call with RunOptions::outputs_on_device returned it.
//
// A tensor does not depend on the model that made it: it may outlive the model, and later calls do
// not change it. It is as thread safe as a std::vector: any number of readers, or one writer.
class Tensor {
 public:
  // Releases what `owner` points to.
  using Deleter = void (*)(void* owner);

  // No tensor: null data and no sizes. A tensor that was moved from is in this state.
  Tensor() = default;
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    data_ = std::exchange(other.data_, nullptr);
    dtype_ = other.dtype_;
    cuda_device_ = other.cuda_device_;
    sizes_ = std::exchange(other.sizes_, {});
    owner_ = std::move(other.owner_);
    return *this;
  }

  // Takes over contiguous memory; `deleter(owner)` is called once, when the tensor is destroyed.
  static Tensor Adopt(void* data, DType dtype, std::vector<std::int64_t> sizes, void* owner,
                      Deleter deleter, std::int32_t cuda_device = TensorView::kCpu);

  void* data() { return data_; }
  const void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  // The number of the CUDA device in whose memory it is, or TensorView::kCpu.
  std::int32_t cuda_device() const { return cuda_device_; }
  std::size_t rank() const { return sizes_.size(); }
  std::span<const std::int64_t> sizes() const { return sizes_; }
  std::int64_t size(std::size_t dim) const {
    assert(dim < sizes_.size());
    return sizes_[dim];
  }
  // Number of elements; 1 for a tensor of rank 0, 0 if there is no tensor.
  std::int64_t numel() const;

  // A borrowed view, for example as an input of another model.
  TensorView view() const&;
  TensorView view() const&& = delete;

  // Hand the tensor over to another library, without a copy; the receiver must call `deleter`.
  dlpack::DLManagedTensor* ToDLPack() &&;
  dlpack::DLManagedTensorVersioned* ToDLPackVersioned() &&;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::kFloat32;
  std::int32_t cuda_device_ = TensorView::kCpu;
  std::vector<std::int64_t> sizes_;
  std::unique_ptr<void, Deleter> owner_{nullptr, [](void*) {}};
};

// A Tensor of known element type and rank.
//
//   out->logits.data()            // float*, row-major
//   out->logits.size(0)
//   out->logits(b, s, v)          // one element
//   out->logits.span()            // all elements
template <typename T, std::size_t N>
class TypedTensor {
 public:
  using element_type = T;
  static constexpr std::size_t kRank = N;

  TypedTensor() = default;
  // `tensor` must have the dtype of T and rank N.
  explicit TypedTensor(Tensor tensor) : tensor_(std::move(tensor)) {
    assert(tensor_.dtype() == DTypeOf<T> && tensor_.rank() == N);
  }

  T* data() { return static_cast<T*>(tensor_.data()); }
  const T* data() const { return static_cast<const T*>(tensor_.data()); }
  std::int64_t size(std::size_t dim) const { return sizes()[dim]; }
  std::array<std::int64_t, N> sizes() const {
    std::array<std::int64_t, N> sizes{};
    for (std::size_t d = 0; d < N && d < tensor_.rank(); ++d) sizes[d] = tensor_.size(d);
    return sizes;
  }
  std::int64_t numel() const { return tensor_.numel(); }

  std::span<T> span() { return {data(), static_cast<std::size_t>(numel())}; }
  std::span<const T> span() const { return {data(), static_cast<std::size_t>(numel())}; }

  // The element at these indices, which must be in range.
  template <std::integral... Indices>
    requires(sizeof...(Indices) == N)
  T& operator()(Indices... indices) {
    return data()[Offset({static_cast<std::int64_t>(indices)...})];
  }
  template <std::integral... Indices>
    requires(sizeof...(Indices) == N)
  const T& operator()(Indices... indices) const {
    return data()[Offset({static_cast<std::int64_t>(indices)...})];
  }

  // Lets an output of one call be an input of the next. Borrows this tensor's memory.
  operator TensorRef<const T, N>() const& {  // NOLINT(google-explicit-constructor)
    return TensorRef<const T, N>(data(), Sizes<N>(sizes())).OnCuda(tensor_.cuda_device());
  }
  operator TensorRef<T, N>() & {  // NOLINT(google-explicit-constructor)
    return TensorRef<T, N>(data(), Sizes<N>(sizes())).OnCuda(tensor_.cuda_device());
  }

  const Tensor& tensor() const& { return tensor_; }
  Tensor&& tensor() && { return std::move(tensor_); }

 private:
  std::int64_t Offset(const std::array<std::int64_t, N>& indices) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < N; ++d) {
      assert(indices[d] >= 0 && indices[d] < tensor_.size(d));
      offset = offset * tensor_.size(d) + indices[d];
    }
    return offset;
  }

  Tensor tensor_;
};

}  // namespace aoti

#endif  // AOTI_TENSOR_H_
