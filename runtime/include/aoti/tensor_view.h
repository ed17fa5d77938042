// Borrowed tensors, which are a model's inputs.

#ifndef AOTI_TENSOR_VIEW_H_
#define AOTI_TENSOR_VIEW_H_

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "aoti/cxx20.h"
#include "aoti/dlpack.h"
#include "aoti/dtype.h"
#include "aoti/result.h"

namespace aoti {

// A tensor that the view does not own: data, sizes and strides must stay alive and unchanged for as
// long as the view is used. Constructing a view copies and checks nothing;
// Model::Run() checks.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::span<const std::int64_t> sizes;
  // Distance between neighbours in each dimension, in elements. Empty: contiguous (row-major).
  std::span<const std::int64_t> strides;
  // Whether the memory must not be written. Only tensors that the model mutates need to be
  // writable.
  bool read_only = true;
  // The number of elements in the caller's buffer, if it is known: Model::Run() compares it with
  // `sizes`.
  std::int64_t buffer_elements = kUnknown;
  // The number of the CUDA device in whose memory `data` is; kCpu: in the CPU's memory.
  std::int32_t cuda_device = kCpu;

  static constexpr std::int32_t kCpu = -1;
  static constexpr std::int64_t kUnknown = -1;
  static constexpr std::int64_t kMissing = -2;
  // Stands for an input that was not given.
  static TensorView Missing() { return {.sizes = {}, .strides = {}, .buffer_elements = kMissing}; }
};

// A view of a DLPack tensor, which borrows `tensor`, its arrays and its memory. Errors:
// kWrongDevice; kWrongDType; kWrongRank and kInvalidArgument for a malformed tensor.
Result<TensorView> ViewOfDLPack(const dlpack::DLTensor& tensor, bool read_only);

// The value of a number among the inputs that the caller has not set. Passing it is reported as a
// missing input.
struct NotGiven {
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator std::int64_t() const { return std::numeric_limits<std::int64_t>::min(); }
  // A NaN that no computation gives.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator double() const { return std::bit_cast<double>(0x7FF8'A071'0000'A071); }
};
inline constexpr NotGiven kNotGiven;

// A view of a number, which must outlive it.
inline TensorView ViewOfNumber(const double& number) {
  if (std::bit_cast<std::int64_t>(number) == std::bit_cast<std::int64_t>(double(kNotGiven))) {
    return TensorView::Missing();
  }
  return {
      .data = const_cast<double*>(&number), .dtype = DType::kFloat64, .sizes = {}, .strides = {}};
}
inline TensorView ViewOfNumber(const std::int64_t& number) {
  if (number == std::int64_t(kNotGiven)) return TensorView::Missing();
  return {.data = const_cast<std::int64_t*>(&number),
          .dtype = DType::kInt64,
          .sizes = {},
          .strides = {}};
}
TensorView ViewOfNumber(double&&) = delete;
TensorView ViewOfNumber(std::int64_t&&) = delete;

// N sizes or N strides, constructed from integers of any type: {batch, tokens.size()}.
template <std::size_t N>
class Sizes {
 public:
  constexpr Sizes() = default;
  constexpr Sizes(const std::array<std::int64_t, N>& values)  // NOLINT(google-explicit-constructor)
      : values_(values) {}
  template <std::integral... Ints>
    requires(sizeof...(Ints) == N && N > 0)
  constexpr Sizes(Ints... values)  // NOLINT(google-explicit-constructor)
      : values_{static_cast<std::int64_t>(values)...} {}

  constexpr std::int64_t operator[](std::size_t i) const { return values_[i]; }
  constexpr const std::array<std::int64_t, N>& array() const { return values_; }
  constexpr std::span<const std::int64_t> span() const { return values_; }

 private:
  std::array<std::int64_t, N> values_{};
};

// A borrowed tensor with N dimensions of T; `TensorRef<const T, N>` for a tensor that is only read.
//
//   std::vector<int64_t> tokens = ...;
//   // Contiguous; the call checks the vector's length.
//   TensorRef<const int64_t, 2> a = {tokens, {batch, seq}};
//   // Contiguous.
//   TensorRef<const int64_t, 2> b = {tokens.data(), {batch, seq}};
//   // Strides in elements.
//   TensorRef<const float, 3> c = {pixels, {h, w, 3}, {row_stride, 3, 1}};
//
// The memory must outlive the call that the reference is passed to. Sizes and strides are copied
// into the reference.
template <typename T, std::size_t N>
class TensorRef {
 public:
  using element_type = T;
  static constexpr std::size_t kRank = N;

  // No tensor. Passing it is reported as a missing input.
  constexpr TensorRef() = default;

  // `data` points to the element at index (0, ..., 0).
  constexpr TensorRef(T* data, const Sizes<N>& sizes) : data_(data), sizes_(sizes), set_(true) {}

  constexpr TensorRef(T* data, const Sizes<N>& sizes, const Sizes<N>& strides)
      : data_(data), sizes_(sizes), strides_(strides), set_(true), strided_(true) {}

  // From a vector, array or span that has exactly as many elements as `sizes` gives; a call with
  // another length fails with kWrongSize.
  constexpr TensorRef(std::span<T> data, const Sizes<N>& sizes)
      : data_(data.data()),
        sizes_(sizes),
        buffer_elements_(static_cast<std::int64_t>(data.size())),
        set_(true) {}

  // A writable reference converts to a read-only one.
  template <typename U>
    requires(std::is_const_v<T> && std::same_as<U, std::remove_const_t<T>>)
  constexpr TensorRef(const TensorRef<U, N>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data_),
        sizes_(other.sizes_),
        strides_(other.strides_),
        buffer_elements_(other.buffer_elements_),
        cuda_device_(other.cuda_device_),
        set_(other.set_),
        strided_(other.strided_) {}

  // The same tensor, where `data` is in the memory of a CUDA device:
  //   model->Run({.x = aoti::TensorRef<const float, 2>(x, {batch, 64}).OnCuda()});
  constexpr TensorRef OnCuda(std::int32_t device = 0) const {
    TensorRef on_cuda = *this;
    on_cuda.cuda_device_ = device;
    return on_cuda;
  }

  constexpr T* data() const { return data_; }
  constexpr std::int64_t size(std::size_t dim) const { return sizes_[dim]; }
  constexpr bool has_value() const { return set_; }

  // The untyped view. It borrows this object's sizes and strides, so `*this` must outlive it.
  TensorView view() const& {
    if (!set_) return TensorView::Missing();
    return {
        .data = const_cast<std::remove_const_t<T>*>(data_),
        .dtype = DTypeOf<T>,
        .sizes = sizes_.span(),
        .strides = strided_ ? strides_.span() : std::span<const std::int64_t>(),
        .read_only = std::is_const_v<T>,
        .buffer_elements = buffer_elements_,
        .cuda_device = cuda_device_,
    };
  }
  TensorView view() const&& = delete;

 private:
  template <typename, std::size_t>
  friend class TensorRef;

  T* data_ = nullptr;
  Sizes<N> sizes_;
  Sizes<N> strides_;
  std::int64_t buffer_elements_ = TensorView::kUnknown;
  std::int32_t cuda_device_ = TensorView::kCpu;
  bool set_ = false;
  bool strided_ = false;
};

}  // namespace aoti

#endif  // AOTI_TENSOR_VIEW_H_
