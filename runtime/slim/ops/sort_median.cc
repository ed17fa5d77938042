// The element of a given rank in each line or in the whole tensor: kthvalue, median, mode.

#include <algorithm>
#include <limits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/sort_lines.h"

namespace aoti::slim {
namespace {

TensorPtr WithoutDim(TensorPtr tensor, std::int64_t dim) {
  if (tensor->rank() == 0) return tensor;
  std::int64_t sizes[kMaxRank], strides[kMaxRank];
  std::size_t rank = 0;
  for (std::int64_t d = 0; d < tensor->rank(); ++d) {
    if (d == dim) continue;
    sizes[rank] = tensor->size(d);
    strides[rank++] = tensor->stride(d);
  }
  return View(*tensor, {sizes, rank}, {strides, rank}, tensor->offset());
}

// pick(line, items) returns the index of the selected element; `items` has room for two lines.
template <typename Pick>
Selected SelectPerLine(const char* name, const Tensor& self, std::int64_t dim, bool keepdim,
                       const Pick& pick) {
  dim = WrapDim(dim, self.rank());
  Require(SizeAt(self, dim) > 0, name, ": dim ", dim, " is empty");
  const SizesWith sizes(self.sizes(), dim, 1);
  Selected out = {Empty(self.dtype(), sizes), Empty(ScalarType::kInt64, sizes)};
  ForEachSortLine(self, dim, out, 2 * SizeAt(self, dim),
                  [&](const auto& line, auto* items) { line.Put(0, pick(line, items)); });
  if (keepdim) return out;
  return {WithoutDim(std::move(out.values), dim), WithoutDim(std::move(out.indices), dim)};
}

// The index of the element with this rank, in ascending order.
template <typename Packed, typename Bits>
std::int64_t IndexOfRank(const SortLine<Bits>& line, const KeyRule& rule, std::int64_t rank,
                         Packed* items) {
  rule.PackLine(line.in, line.in_stride, line.size, items);
  SelectSmallest(items, line.size, rank + 1);
  return IndexOf(items[rank]);
}

Selected KthValue(const Tensor& self, std::int64_t k, std::int64_t dim, bool keepdim) {
  const std::int64_t size = SizeAt(self, WrapDim(dim, self.rank()));
  Require(size == 0 || (k >= 1 && k <= size), "kthvalue: k is ", k, ", must be in 1..", size);
  const KeyRule rule(self.dtype(), /*descending=*/false);
  return SelectPerLine("kthvalue", self, dim, keepdim, [&](const auto& line, auto* items) {
    return IndexOfRank(line, rule, k - 1, items);
  });
}

enum class Nan { kPropagate, kIgnore };

template <typename Packed, typename Bits>
std::int64_t IndexOfMedian(const SortLine<Bits>& line, const KeyRule& rule, Nan nan,
                           Packed* items) {
  std::int64_t counted = line.size;
  for (std::int64_t i = 0; i < line.size; ++i) {
    if (!rule.IsNan(line.at(i))) continue;
    if (nan == Nan::kPropagate) return i;
    --counted;
  }
  // NaNs are sorted last.
  return IndexOfRank(line, rule, std::max<std::int64_t>(counted - 1, 0) / 2, items);
}

Selected MedianOfDim(const Tensor& self, std::int64_t dim, bool keepdim, Nan nan) {
  const KeyRule rule(self.dtype(), /*descending=*/false);
  return SelectPerLine("median", self, dim, keepdim, [&](const auto& line, auto* items) {
    return IndexOfMedian(line, rule, nan, items);
  });
}

TensorPtr MedianOfAll(const Tensor& self, Nan nan) {
  const std::int64_t size = self.numel();
  if (size == 0) {
    TensorPtr result = Empty(self.dtype(), {});
    const TensorPtr undefined = Empty(ScalarType::kFloat64, {});
    *undefined->data<double>() = std::numeric_limits<double>::quiet_NaN();
    Copy(*result, *undefined);
    return result;
  }
  const TensorPtr flat = Contiguous(self);
  const std::int64_t one = 1;
  const TensorPtr line = View(*flat, {&size, 1}, {&one, 1}, flat->offset());
  return MedianOfDim(*line, 0, /*keepdim=*/false, nan).values;
}

Selected Mode(const Tensor& self, std::int64_t dim, bool keepdim) {
  const KeyRule rule(self.dtype(), /*descending=*/false);
  const auto pick = [&]<typename Packed, typename Bits>(const SortLine<Bits>& line, Packed* items) {
    rule.PackLine(line.in, line.in_stride, line.size, items);
    const Packed* sorted = SortPacked(items, items + line.size, line.size, line.kKeyBits);
    std::int64_t most = 0, index = 0, run = 0;
    for (std::int64_t i = 0; i < line.size; ++i) {
      ++run;
      const bool same = i + 1 < line.size &&
                        (sorted[i] ^ sorted[i + 1]) >> kIndexBits<Packed> == 0 &&
                        !rule.IsNan(line.at(IndexOf(sorted[i])));
      if (same) continue;
      if (run > most) {
        most = run;
        index = IndexOf(sorted[i]);
      }
      run = 0;
    }
    return index;
  };
  return SelectPerLine("mode", self, dim, keepdim, pick);
}

void Return(Selected result, AtenTensorHandle* values, AtenTensorHandle* indices) {
  *values = result.values.release();
  *indices = result.indices.release();
}

template <Nan nan>
void CallMedianOfDim(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  Selected result = MedianOfDim(*self, TakeInt(stack[1]), TakeBool(stack[2]), nan);
  stack[0] = Give(std::move(result.values));
  stack[1] = Give(std::move(result.indices));
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;
using aoti::slim::Nan;
using aoti::slim::Return;

AOTI_SLIM_DISPATCHER_OP(aten_median_dim, "aten::median", "dim",
                        aoti::slim::CallMedianOfDim<Nan::kPropagate>)
AOTI_SLIM_DISPATCHER_OP(aten_nanmedian_dim, "aten::nanmedian", "dim",
                        aoti::slim::CallMedianOfDim<Nan::kIgnore>)

extern "C" {

AOTITorchError aoti_torch_cpu_kthvalue(AtenTensorHandle self, int64_t k, int64_t dim,
                                       int32_t keepdim, AtenTensorHandle* ret0,
                                       AtenTensorHandle* ret1) {
  return Guarded([&] { Return(aoti::slim::KthValue(*self, k, dim, keepdim != 0), ret0, ret1); });
}

AOTITorchError aoti_torch_cpu_median(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::MedianOfAll(*self, Nan::kPropagate).release(); });
}

AOTITorchError aoti_torch_cpu_nanmedian(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::MedianOfAll(*self, Nan::kIgnore).release(); });
}

AOTITorchError aoti_torch_cpu_mode(AtenTensorHandle self, int64_t dim, int32_t keepdim,
                                   AtenTensorHandle* ret0, AtenTensorHandle* ret1) {
  return Guarded([&] { Return(aoti::slim::Mode(*self, dim, keepdim != 0), ret0, ret1); });
}

}  // extern "C"
