// Positions in sorted sequences: searchsorted, bucketize, histc, bincount.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/loops.h"

namespace aoti::slim {
namespace {

// The dtype in which the elements of a sequence and the values are compared.
ScalarType Common(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (IsFloating(a) != IsFloating(b)) return IsFloating(a) ? a : b;
  if (IsFloating(a))
    return SizeOf(a) == SizeOf(b) ? ScalarType::kFloat32 : SizeOf(a) > SizeOf(b) ? a : b;
  return ScalarType::kInt64;
}

// A sorted sequence; if `sorter` is set, it gives the order.
template <typename T>
struct Sequence {
  const T* values;
  const std::int64_t* sorter;  // may be null
  std::int64_t size;

  // The number of elements before `value`: those that are less, and if `right` is set also those
  // that are equal. NaN is greater than all numbers.
  std::int64_t Place(T value, bool right) const {
    using Compared = std::conditional_t<std::is_integral_v<T>, T, Accumulator<T>>;
    const auto wanted = static_cast<Compared>(value);
    const T* from = values;
    std::int64_t first = 0;
    // A binary search without branches: the comparison becomes a conditional move.
    for (std::int64_t rest = size; rest > 0;) {
      const std::int64_t half = rest / 2, middle = first + half;
      const auto at = static_cast<Compared>(from[sorter == nullptr ? middle : sorter[middle]]);
      // PyTorch's comparisons, which determine the position of NaN.
      const bool before = right ? !(at > wanted) : !(at >= wanted);
      first = before ? middle + 1 : first;
      rest = before ? rest - half - 1 : half;
    }
    return first;
  }
};

bool SearchesRight(bool right, std::optional<std::string_view> side) {
  if (!side) return right;
  Require(*side == "left" || *side == "right", "searchsorted: side is \"", *side,
          "\", must be \"left\" or \"right\"");
  Require(*side == "right" || !right, "searchsorted: side is \"left\", but right is true");
  return *side == "right";
}

TensorPtr SearchSorted(const Tensor& sequence, const Tensor& wanted, bool int32, bool right,
                       const Tensor* sorter) {
  Require(sequence.rank() > 0, "searchsorted: the sorted sequence is a scalar");
  const bool single = sequence.rank() == 1;
  if (!single) {
    Require(wanted.rank() == sequence.rank(), "searchsorted: values have ", wanted.rank(),
            " dims, must have ", sequence.rank(), " as the sorted sequence has");
    for (std::int64_t d = 0; d + 1 < wanted.rank(); ++d) {
      Require(wanted.size(d) == sequence.size(d), "searchsorted: values are of size ",
              wanted.size(d), " in dim ", d, ", must be ", sequence.size(d));
    }
  }
  const std::int64_t size = sequence.size(sequence.rank() - 1);
  TensorPtr order;
  if (sorter != nullptr) {
    Require(std::ranges::equal(sorter->sizes(), sequence.sizes()) &&
                sorter->dtype() == ScalarType::kInt64,
            "searchsorted: sorter must be int64 of the sorted sequence's sizes");
    order = Contiguous(*sorter);
    const auto* at = order->data<std::int64_t>();
    for (std::int64_t i = 0; i < order->numel(); ++i) {
      if (at[i] < 0 || at[i] >= size) ThrowPlace(at[i], sequence.rank() - 1, size);
    }
  }
  const ScalarType common = Common(sequence.dtype(), wanted.dtype());
  const TensorPtr keys = Converted(sequence, common), values = Converted(wanted, common);
  TensorPtr out = Empty(int32 ? ScalarType::kInt32 : ScalarType::kInt64, wanted.sizes());
  const std::int64_t count = values->numel();
  const std::int64_t each = single || wanted.rank() == 0 ? count : wanted.size(wanted.rank() - 1);
  DispatchReal(common, [&]<typename T>() {
    internal::ParallelFor(0, count, kGrain / 8, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at = i / each * size;
        const Sequence<T> line = {keys->data<T>() + at,
                                  order == nullptr ? nullptr : order->data<std::int64_t>() + at,
                                  size};
        const std::int64_t place = line.Place(values->data<T>()[i], right);
        if (int32) {
          out->data<std::int32_t>()[i] = static_cast<std::int32_t>(place);
        } else {
          out->data<std::int64_t>()[i] = place;
        }
      }
    });
  });
  return out;
}

TensorPtr Bucketize(const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
  Require(boundaries.rank() == 1, "bucketize: boundaries have ", boundaries.rank(),
          " dims, must have 1");
  return SearchSorted(boundaries, self, int32, right, nullptr);
}

// The number of elements in each of `bins` equal intervals between `low` and `high`; the last
// interval includes its end.
TensorPtr Histc(const Tensor& self, std::int64_t bins, double low, double high) {
  Require(bins > 0, "histc: bins is ", bins, ", must be positive");
  TensorPtr out = Empty(self.dtype(), {bins});
  const TensorPtr in = Contiguous(self);
  const std::int64_t size = in->numel();
  DispatchReal(self.dtype(), [&]<typename T>() {
    using Wide = std::conditional_t<std::is_integral_v<T>, double, Accumulator<T>>;
    const T* values = in->data<T>();
    auto least = static_cast<Wide>(low), most = static_cast<Wide>(high);
    if (low == high && size > 0) {
      least = most = static_cast<Wide>(values[0]);
      for (std::int64_t i = 0; i < size; ++i) {
        const auto value = static_cast<Wide>(values[i]);
        least = value < least || value != value ? value : least;
        most = value > most || value != value ? value : most;
      }
    }
    if (least == most) {
      least -= 1;
      most += 1;
    }
    Require(std::isfinite(least) && std::isfinite(most), "histc: the range ", double(least), "..",
            double(most), " is not finite");
    Require(least < most, "histc: max is ", double(most), ", must be larger than min, ",
            double(least));
    Scratch<std::int64_t> counts(static_cast<std::size_t>(bins));
    std::fill(counts.begin(), counts.end(), 0);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto value = static_cast<Wide>(values[i]);
      if (!(value >= least && value <= most)) continue;
      const auto place =
          static_cast<std::int64_t>((value - least) * static_cast<Wide>(bins) / (most - least));
      ++counts[static_cast<std::size_t>(std::min(place, bins - 1))];
    }
    for (std::int64_t i = 0; i < bins; ++i) {
      out->data<T>()[i] = static_cast<T>(static_cast<Wide>(counts[static_cast<std::size_t>(i)]));
    }
  });
  return out;
}

TensorPtr BinCount(const Tensor& self, const Tensor* weights, std::int64_t minlength) {
  Require(self.rank() == 1 && IsIntegral(self.dtype()), "bincount: input is ", NameOf(self.dtype()),
          " with ", self.rank(), " dims, must have integers and 1 dim");
  Require(minlength >= 0, "bincount: minlength is ", minlength, ", must not be negative");
  Require(weights == nullptr || std::ranges::equal(weights->sizes(), self.sizes()),
          "bincount: weights must be of the input's size, ", self.numel());
  const TensorPtr in = Converted(self, ScalarType::kInt64);
  const auto* values = in->data<std::int64_t>();
  std::int64_t bins = minlength;
  for (std::int64_t i = 0; i < in->numel(); ++i) {
    Require(values[i] >= 0, "bincount: input[", i, "] is ", values[i], ", must not be negative");
    bins = std::max(bins, CheckedSum(values[i], 1));
  }
  const auto add = [&]<typename T>(TensorPtr out, const T* weight) {
    T* counts = out->template data<T>();
    std::fill_n(counts, bins, T(0));
    for (std::int64_t i = 0; i < in->numel(); ++i) {
      counts[values[i]] += weight == nullptr ? T(1) : weight[i];
    }
    return out;
  };
  if (weights == nullptr || in->numel() == 0) {  // for an empty input, PyTorch ignores the weights
    return add(Empty(ScalarType::kInt64, {bins}), static_cast<const std::int64_t*>(nullptr));
  }
  if (weights->dtype() == ScalarType::kFloat32) {
    const TensorPtr plain = Contiguous(*weights);
    return add(Empty(ScalarType::kFloat32, {bins}), plain->data<float>());
  }
  const TensorPtr wide = Converted(*weights, ScalarType::kFloat64);
  return add(Empty(ScalarType::kFloat64, {bins}), wide->data<double>());
}

void CallBinCount(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TensorPtr weights = TakeOptionalTensor(stack[1]);
  stack[0] = Give(BinCount(*self, weights.get(), TakeInt(stack[2])));
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

AOTI_SLIM_DISPATCHER_OP(aten_bincount, "aten::bincount", "", aoti::slim::CallBinCount)

extern "C" {

AOTITorchError aoti_torch_cpu_searchsorted_Tensor(AtenTensorHandle sorted_sequence,
                                                  AtenTensorHandle self, int32_t out_int32,
                                                  int32_t right, const char** side,
                                                  AtenTensorHandle* sorter,
                                                  AtenTensorHandle* ret0) {
  return Guarded([&] {
    const bool from_right = aoti::slim::SearchesRight(
        right != 0, side == nullptr ? std::nullopt : std::optional<std::string_view>(*side));
    *ret0 = aoti::slim::SearchSorted(*sorted_sequence, *self, out_int32 != 0, from_right,
                                     sorter == nullptr ? nullptr : *sorter)
                .release();
  });
}

AOTITorchError aoti_torch_cpu_searchsorted_Scalar(AtenTensorHandle sorted_sequence, double self,
                                                  int32_t out_int32, int32_t right,
                                                  const char** side, AtenTensorHandle* sorter,
                                                  AtenTensorHandle* ret0) {
  aoti::slim::TensorPtr value;
  const AOTITorchError made =
      Guarded([&] { value = aoti::slim::FromDouble(self, aoti::slim::ScalarType::kFloat64); });
  if (made != AOTI_TORCH_SUCCESS) return made;
  return aoti_torch_cpu_searchsorted_Tensor(sorted_sequence, value.get(), out_int32, right, side,
                                            sorter, ret0);
}

AOTITorchError aoti_torch_cpu_bucketize_Tensor(AtenTensorHandle self, AtenTensorHandle boundaries,
                                               int32_t out_int32, int32_t right,
                                               AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 = aoti::slim::Bucketize(*self, *boundaries, out_int32 != 0, right != 0).release();
  });
}

AOTITorchError aoti_torch_cpu_histc(AtenTensorHandle self, int64_t bins, double min, double max,
                                    AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Histc(*self, bins, min, max).release(); });
}

}  // extern "C"
