// All variants of unique.

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/sort_keys.h"

namespace aoti::slim {
namespace {

struct Unique {
  TensorPtr values;
  TensorPtr inverse;
  TensorPtr counts;

  void ToStack(StableIValue* stack) {
    stack[0] = Give(std::move(values));
    stack[1] = Give(std::move(inverse));
    stack[2] = Give(std::move(counts));
  }
};

// An order of the items in which equal items are adjacent, and the first item of each group.
struct Groups {
  explicit Groups(std::int64_t size)
      : order(Empty(ScalarType::kInt64, {size})), begins(Empty(ScalarType::kInt64, {size})) {}
  std::int64_t* order_data() const { return order->data<std::int64_t>(); }
  std::int64_t* begins_data() const { return begins->data<std::int64_t>(); }
  std::int64_t size() const { return order->numel(); }

  // Forms the groups: is_same(a, b) compares two adjacent items.
  template <typename IsSame>
  void Find(const IsSame& is_same) {
    const std::int64_t* items = order_data();
    for (std::int64_t i = 0; i < size(); ++i) {
      if (i == 0 || !is_same(items[i - 1], items[i])) begins_data()[count++] = i;
    }
  }

  TensorPtr order, begins;
  std::int64_t count = 0;
};

// The group of each item, in a tensor of these sizes.
TensorPtr Inverse(const Groups& groups, Ints sizes) {
  TensorPtr inverse = Empty(ScalarType::kInt64, sizes);
  auto* out = inverse->data<std::int64_t>();
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const std::int64_t end = g + 1 < groups.count ? groups.begins_data()[g + 1] : groups.size();
    for (std::int64_t i = groups.begins_data()[g]; i < end; ++i) out[groups.order_data()[i]] = g;
  }
  return inverse;
}

TensorPtr Counts(const Groups& groups) {
  TensorPtr counts = Empty(ScalarType::kInt64, {groups.count});
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const std::int64_t end = g + 1 < groups.count ? groups.begins_data()[g + 1] : groups.size();
    counts->data<std::int64_t>()[g] = end - groups.begins_data()[g];
  }
  return counts;
}

// Whether two elements are equal: NaN equals nothing, and zeros of both signs are equal.
class SameElement {
 public:
  explicit SameElement(ScalarType dtype) : rule_(dtype, /*descending=*/false) {}
  template <typename Bits>
  bool operator()(Bits a, Bits b) const {
    return !rule_.IsNan(a) &&
           (a == b || rule_.Pack<Packed128>(a, 0) == rule_.Pack<Packed128>(b, 0));
  }

 private:
  KeyRule rule_;
};

enum class Neighbours { kSorted, kAsTheyAre };

Unique UniqueElements(const Tensor& self, Neighbours neighbours, bool return_inverse,
                      bool return_counts) {
  const TensorPtr flat = Contiguous(self);
  const std::int64_t size = flat->numel();
  Groups groups(size);
  Unique result;
  DispatchSortable(self.dtype(), size, [&]<typename Bits, typename Packed>() {
    const Bits* values = flat->data<Bits>();
    std::int64_t* order = groups.order_data();
    if (neighbours == Neighbours::kSorted) {
      Scratch<Packed> items(2 * static_cast<std::size_t>(size));
      const KeyRule rule(self.dtype(), /*descending=*/false);
      rule.PackLine(values, 1, size, items.data());
      const Packed* sorted = SortPacked(items.data(), items.data() + size, size,
                                        static_cast<int>(sizeof(Bits) * CHAR_BIT));
      for (std::int64_t i = 0; i < size; ++i) order[i] = IndexOf(sorted[i]);
    } else {
      for (std::int64_t i = 0; i < size; ++i) order[i] = i;
    }
    const SameElement same(self.dtype());
    groups.Find([&](std::int64_t a, std::int64_t b) { return same(values[a], values[b]); });
    result.values = Empty(self.dtype(), {groups.count});
    for (std::int64_t g = 0; g < groups.count; ++g) {
      result.values->data<Bits>()[g] = values[order[groups.begins_data()[g]]];
    }
  });
  result.inverse = return_inverse ? Inverse(groups, self.sizes()) : Empty(ScalarType::kInt64, {0});
  result.counts = return_counts ? Counts(groups) : Empty(ScalarType::kInt64, {0});
  return result;
}

// Compares whole slices along a dim, as rows.
Unique UniqueSlices(const Tensor& self, std::int64_t dim, Neighbours neighbours) {
  Require(self.rank() > 0, "unique: a scalar has no dims");
  dim = WrapDim(dim, self.rank());
  const std::int64_t size = self.size(dim);
  // With the dim moved to the front.
  Shape sizes, strides;
  sizes.Append(size);
  strides.Append(self.stride(dim));
  for (std::int64_t d = 0; d < self.rank(); ++d) {
    if (d == dim) continue;
    sizes.Append(self.size(d));
    strides.Append(self.stride(d));
  }
  const TensorPtr rows = Contiguous(*View(self, sizes, strides, self.offset()));
  const std::int64_t width = size == 0 ? 0 : rows->numel() / size;
  Require(width > 0 || size == 0, "unique: the slices along dim ", dim, " are empty");
  Groups groups(size);
  Unique result;
  DispatchSortable(self.dtype(), size, [&]<typename Bits, typename Packed>() {
    const Bits* values = rows->data<Bits>();
    const KeyRule rule(self.dtype(), /*descending=*/false);
    std::int64_t* order = groups.order_data();
    for (std::int64_t i = 0; i < size; ++i) order[i] = i;
    if (neighbours == Neighbours::kSorted) {
      std::sort(order, order + size, [&](std::int64_t a, std::int64_t b) {
        for (std::int64_t j = 0; j < width; ++j) {
          const Packed x = rule.Pack<Packed>(values[a * width + j], 0);
          const Packed y = rule.Pack<Packed>(values[b * width + j], 0);
          if (x != y) return x < y;
        }
        return a < b;
      });
    }
    const SameElement same(self.dtype());
    groups.Find([&](std::int64_t a, std::int64_t b) {
      return std::equal(values + a * width, values + (a + 1) * width, values + b * width, same);
    });
    sizes[0] = groups.count;
    const TensorPtr chosen = Empty(self.dtype(), sizes);
    for (std::int64_t g = 0; g < groups.count; ++g) {
      std::copy_n(values + order[groups.begins_data()[g]] * width, width,
                  chosen->data<Bits>() + g * width);
    }
    // Moves the dim back to its place.
    result.values = Empty(self.dtype(), SizesWith(self.sizes(), dim, groups.count));
    Shape target_strides;
    target_strides.Append(result.values->stride(dim));
    for (std::int64_t d = 0; d < self.rank(); ++d) {
      if (d != dim) target_strides.Append(result.values->stride(d));
    }
    Copy(*View(*result.values, sizes, target_strides, 0), *chosen);
  });
  result.inverse = Inverse(groups, {&size, 1});
  result.counts = Counts(groups);
  return result;
}

void CallUnique2(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  UniqueElements(*self, Neighbours::kSorted, TakeBool(stack[2]), TakeBool(stack[3])).ToStack(stack);
}

void CallUniqueDim(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  UniqueSlices(*self, TakeInt(stack[1]), Neighbours::kSorted).ToStack(stack);
}

void CallUniqueConsecutive(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::optional<std::int64_t> dim = TakeOptionalInt(stack[3]);
  Unique result =
      dim ? UniqueSlices(*self, *dim, Neighbours::kAsTheyAre)
          : UniqueElements(*self, Neighbours::kAsTheyAre, TakeBool(stack[1]), TakeBool(stack[2]));
  result.ToStack(stack);
}

void CallUniqueDimConsecutive(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  UniqueSlices(*self, TakeInt(stack[1]), Neighbours::kAsTheyAre).ToStack(stack);
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__unique2, "aten::_unique2", "", aoti::slim::CallUnique2)
AOTI_SLIM_DISPATCHER_OP(aten_unique_dim, "aten::unique_dim", "", aoti::slim::CallUniqueDim)
AOTI_SLIM_DISPATCHER_OP(aten_unique_consecutive, "aten::unique_consecutive", "",
                        aoti::slim::CallUniqueConsecutive)
AOTI_SLIM_DISPATCHER_OP(aten_unique_dim_consecutive, "aten::unique_dim_consecutive", "",
                        aoti::slim::CallUniqueDimConsecutive)
