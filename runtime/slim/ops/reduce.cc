#include "runtime/slim/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/ops/pointwise.h"

namespace aoti::slim {
namespace {

// The elements of `self`, as T, are combined into those of the result with the same kept dims.
template <typename T, typename Combine>
TensorPtr Reduce(const Tensor& self, Ints dims, bool keepdim, ScalarType dtype, T start,
                 const Combine& combine) {
  bool reduced[kMaxRank] = {};
  for (const std::int64_t dim : dims) {
    bool& one = reduced[WrapDim(dim, self.rank())];
    Require(!one, "dim ", dim, " is given twice");
    one = true;
  }
  Shape kept, sizes, strides;
  for (std::int64_t d = 0; d < self.rank(); ++d) {
    const bool gone = dims.empty() || reduced[d];
    kept.Append(gone ? 1 : self.size(d));
    if (!gone || keepdim) sizes.Append(gone ? 1 : self.size(d));
  }
  const TensorPtr from = As(self, dtype);
  const TensorPtr totals = Empty(dtype, kept);
  std::fill_n(totals->data<T>(), totals->numel(), start);
  for (std::size_t d = 0; d < kept.size(); ++d) {
    strides.Append(kept[d] == 1 ? 0 : totals->strides()[d]);
  }
  ForEachOffset(from->sizes(), {from->strides(), strides}, [&](const std::int64_t* offsets) {
    T& total = totals->data<T>()[offsets[1]];
    total = combine(total, from->data<T>()[offsets[0]]);
  });
  return View(*totals, sizes, Empty(ScalarType::kBool, sizes)->strides(), 0);
}

}  // namespace

TensorPtr SumOfReal(const Tensor& self, Ints dims, bool keepdim) {
  if (!IsFloating(self.dtype())) {
    return Reduce(self, dims, keepdim, ScalarType::kInt64, std::int64_t{0},
                  [](std::int64_t a, std::int64_t b) {
                    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                                     static_cast<std::uint64_t>(b));
                  });
  }
  const TensorPtr sums = Reduce(self, dims, keepdim, ScalarType::kFloat64, 0.0,
                                [](double a, double b) { return a + b; });
  return As(*sums, self.dtype());
}

TensorPtr LargestOfReal(const Tensor& self, Ints dims, bool keepdim) {
  Require(self.numel() > 0, "amax: self has no elements");
  Require(!IsComplex(self.dtype()), "amax: self is ", NameOf(self.dtype()));
  if (!IsFloating(self.dtype())) {
    const TensorPtr largest =
        Reduce(self, dims, keepdim, ScalarType::kInt64, std::numeric_limits<std::int64_t>::min(),
               [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    return As(*largest, self.dtype());
  }
  const TensorPtr largest = Reduce(
      self, dims, keepdim, ScalarType::kFloat64, -std::numeric_limits<double>::infinity(),
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); });
  return As(*largest, self.dtype());
}

}  // namespace aoti::slim
