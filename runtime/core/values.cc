#include "runtime/core/values.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "runtime/core/layout.h"

namespace aoti::internal {
namespace {

// Elements are read with memcpy because a caller's tensor need not be aligned.
template <typename T>
T Read(const T* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename T>
class Search {
 public:
  Search(const TensorView& tensor, const std::int64_t* strides, T low, T high)
      : sizes_(tensor.sizes), strides_(strides), low_(low), high_(high), index_(sizes_.size(), 0) {}

  std::optional<Outlier> Run(const T* data) {
    return Visit(data, 0) ? std::optional<Outlier>({value_, std::move(index_)}) : std::nullopt;
  }

 private:
  bool Visit(const T* data, std::size_t dim) {
    if (dim == sizes_.size()) return Inspect(data);
    const std::int64_t size = sizes_[dim];
    const std::int64_t stride = strides_[dim];
    if (dim + 1 == sizes_.size() && stride == 1 && AllInRange(data, size)) return false;
    for (std::int64_t i = 0; i < size; ++i) {
      index_[dim] = i;
      if (Visit(data + i * stride, dim + 1)) return true;
    }
    return false;
  }

  bool Inspect(const T* element) {
    const T value = Read(element);
    value_ = static_cast<std::int64_t>(value);
    return value < low_ || value > high_;
  }

  // Without branches, so that the compiler vectorises it.
  bool AllInRange(const T* row, std::int64_t size) const {
    bool in_range = true;
    for (std::int64_t i = 0; i < size; ++i) {
      const T value = Read(row + i);
      in_range &= (value >= low_) & (value <= high_);
    }
    return in_range;
  }

  std::span<const std::int64_t> sizes_;
  const std::int64_t* strides_;
  T low_;
  T high_;
  std::vector<std::int64_t> index_;
  std::int64_t value_ = 0;
};

template <typename T>
std::optional<Outlier> FindOutlierOf(const TensorView& tensor, const std::int64_t* strides,
                                     std::int64_t low, std::int64_t high) {
  // Limits outside the range of T are clamped to it, so that the comparison can be done in T.
  using Limits = std::numeric_limits<T>;
  if (low <= Limits::min() && high >= Limits::max()) return std::nullopt;
  const auto clamp = [](std::int64_t bound) {
    return static_cast<T>(std::clamp<std::int64_t>(bound, Limits::min(), Limits::max()));
  };
  return Search<T>(tensor, strides, clamp(low), clamp(high))
      .Run(static_cast<const T*>(tensor.data));
}

}  // namespace

std::optional<Outlier> FindOutlier(const TensorView& tensor, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> contiguous(tensor.sizes.size());
  ContiguousStrides(tensor.sizes, contiguous.data());
  const std::int64_t* strides = tensor.strides.empty() ? contiguous.data() : tensor.strides.data();
  switch (tensor.dtype) {
    case DType::kUInt8:
      return FindOutlierOf<std::uint8_t>(tensor, strides, low, high);
    case DType::kInt8:
      return FindOutlierOf<std::int8_t>(tensor, strides, low, high);
    case DType::kInt16:
      return FindOutlierOf<std::int16_t>(tensor, strides, low, high);
    case DType::kInt32:
      return FindOutlierOf<std::int32_t>(tensor, strides, low, high);
    case DType::kInt64:
      return FindOutlierOf<std::int64_t>(tensor, strides, low, high);
    default:
      return std::nullopt;
  }
}

}  // namespace aoti::internal
