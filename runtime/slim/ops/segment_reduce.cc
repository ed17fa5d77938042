// segment_reduce: sums, products, means or extremes of consecutive parts of a dim.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

enum class Reduction { kSum, kProduct, kMean, kMaximum, kMinimum };

Reduction ReductionOf(std::string_view name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "prod") return Reduction::kProduct;
  if (name == "mean") return Reduction::kMean;
  if (name == "max" || name == "amax") return Reduction::kMaximum;
  if (name == "min" || name == "amin") return Reduction::kMinimum;
  throw OpError(
      StrCat("segment_reduce: reduce is \"", name, "\", must be sum, prod, mean, amax or amin"));
}

// Where each segment begins, and after the last one where it ends: one row for each line of data.
class Bounds {
 public:
  // given: lengths or offsets.
  Bounds(const Tensor& given, bool lengths, bool unsafe, std::int64_t size)
      : segments_(given.size(given.rank() - 1) - (lengths ? 0 : 1)),
        rows_(NumElements(given.sizes().first(given.sizes().size() - 1))),
        places_(static_cast<std::size_t>(rows_ * (segments_ + 1))) {
    const TensorPtr plain = Contiguous(given);
    DispatchIndex(given.dtype(), [&]<typename Index>() {
      const Index* values = plain->data<Index>();
      for (std::int64_t row = 0; row < rows_; ++row) {
        std::int64_t* to = places_.data() + row * (segments_ + 1);
        if (lengths) {
          Sum(values + row * segments_, unsafe, size, to);
        } else {
          Check(values + row * (segments_ + 1), size, to);
        }
      }
    });
  }

  std::int64_t segments() const { return segments_; }
  const std::int64_t* row(std::int64_t i) const { return places_.data() + i * (segments_ + 1); }

 private:
  template <typename Index>
  void Sum(const Index* lengths, bool unsafe, std::int64_t size, std::int64_t* to) const {
    to[0] = 0;
    for (std::int64_t s = 0; s < segments_; ++s) {
      Require(lengths[s] >= 0, "segment_reduce: lengths[", s, "] is ", std::int64_t{lengths[s]},
              ", must not be negative");
      to[s + 1] = CheckedSum(to[s], lengths[s]);
    }
    // "unsafe" allows elements that are in no segment.
    const std::int64_t sum = to[segments_];
    Require(sum <= size && (unsafe || sum == size), "segment_reduce: the sum of the lengths is ",
            sum, ", must be the size of the dim, ", size);
  }
  template <typename Index>
  void Check(const Index* offsets, std::int64_t size, std::int64_t* to) const {
    std::int64_t before = 0;
    for (std::int64_t s = 0; s <= segments_; ++s) {
      Require(offsets[s] >= before && offsets[s] <= size, "segment_reduce: offsets[", s, "] is ",
              std::int64_t{offsets[s]}, ", must be in ", before, "..", size);
      to[s] = before = offsets[s];
    }
  }

  std::int64_t segments_, rows_;
  Scratch<std::int64_t> places_;
};

template <typename T>
T StartOf(Reduction reduction, const double* initial) {
  if (initial != nullptr) return static_cast<T>(*initial);
  switch (reduction) {
    case Reduction::kMaximum:
      return -std::numeric_limits<T>::infinity();
    case Reduction::kMinimum:
      return std::numeric_limits<T>::infinity();
    case Reduction::kProduct:
      return T(1);
    default:
      return T(0);
  }
}

template <typename T>
T Combine(Reduction reduction, T total, T value) {
  switch (reduction) {
    case Reduction::kMaximum:
      return std::isnan(static_cast<double>(value)) ? value : std::max(total, value);
    case Reduction::kMinimum:
      return std::isnan(static_cast<double>(value)) ? value : std::min(total, value);
    case Reduction::kProduct:
      return static_cast<T>(total * value);
    default:
      return static_cast<T>(total + value);
  }
}

// data: the first element of the segment; the others are `step` elements apart.
template <typename T>
T Reduce(Reduction reduction, const double* initial, const T* data, std::int64_t count,
         std::int64_t step) {
  T total = StartOf<T>(reduction, initial);
  for (std::int64_t i = 0; i < count; ++i) total = Combine(reduction, total, data[i * step]);
  if (reduction != Reduction::kMean) return total;
  if (count == 0) return initial == nullptr ? std::numeric_limits<T>::quiet_NaN() : total;
  return static_cast<T>(total / static_cast<T>(count));
}

TensorPtr SegmentReduce(const Tensor& data, Reduction reduction, const Tensor& given, bool lengths,
                        std::int64_t axis, bool unsafe, const double* initial) {
  const char* what = lengths ? "lengths" : "offsets";
  axis = WrapDim(axis, data.rank());
  const auto at = static_cast<std::size_t>(axis);
  Require(given.rank() == axis + 1 && given.rank() <= data.rank() &&
              std::ranges::equal(given.sizes().first(at), data.sizes().first(at)),
          "segment_reduce: ", what, " has ", given.rank(), " dims, must have ", axis + 1,
          ", of which all but the last have the sizes of data");
  Require(lengths || given.size(axis) > 0, "segment_reduce: offsets is empty");
  const std::int64_t size = data.size(axis);
  const Bounds bounds(given, lengths, unsafe, size);
  TensorPtr result = Empty(data.dtype(), SizesWith(data.sizes(), axis, bounds.segments()));
  const std::int64_t inner = NumElements(data.sizes().subspan(at + 1));
  const std::int64_t segments = bounds.segments();
  if (result->numel() == 0) return result;
  const TensorPtr plain = Contiguous(data);
  DispatchFloating(data.dtype(), [&]<typename T>() {
    const T* from = plain->data<T>();
    T* to = result->data<T>();
    internal::ParallelFor(
        0, result->numel(), LineGrain(size / segments), [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t column = i % inner, segment = i / inner % segments;
            const std::int64_t row = i / inner / segments;
            const std::int64_t* places = bounds.row(row) + segment;
            to[i] = Reduce(reduction, initial, from + (row * size + places[0]) * inner + column,
                           places[1] - places[0], inner);
          }
        });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

extern "C" AOTITorchError aoti_torch_cpu_segment_reduce(AtenTensorHandle data, const char* reduce,
                                                        AtenTensorHandle* lengths,
                                                        AtenTensorHandle* indices,
                                                        AtenTensorHandle* offsets, int64_t axis,
                                                        int32_t unsafe, double* initial,
                                                        AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    Require(indices == nullptr, "segment_reduce: indices are not supported, as in PyTorch");
    Require(lengths != nullptr || offsets != nullptr,
            "segment_reduce: needs lengths or offsets, and has neither");
    // With both, PyTorch takes the offsets.
    const bool by_length = offsets == nullptr;
    *ret0 = SegmentReduce(*data, ReductionOf(reduce), by_length ? **lengths : **offsets, by_length,
                          axis, unsafe != 0, initial)
                .release();
  });
}
