// sort and topk.

#include "runtime/slim/kernels/sort.h"

#include <algorithm>
#include <bit>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/ops/sort_lines.h"

namespace aoti::slim {
namespace {

Selected Sort(const Tensor& self, std::int64_t dim, bool descending) {
  dim = WrapDim(dim, self.rank());
  Selected out = {EmptyLike(self), EmptyLike(self, ScalarType::kInt64)};
  const KeyRule rule(self.dtype(), descending);
  const std::int64_t size = SizeAt(self, dim);
  ForEachSortLine(self, dim, out, 2 * size,
                  [&]<typename Bits, typename Packed>(const SortLine<Bits>& line, Packed* items) {
                    rule.PackLine(line.in, line.in_stride, size, items);
                    const Packed* sorted = SortPacked(items, items + size, size, line.kKeyBits);
                    for (std::int64_t i = 0; i < size; ++i) line.Put(i, IndexOf(sorted[i]));
                  });
  return out;
}

// Skips elements of a line that can't be among the best.
class Sieve {
 public:
  // Works for contiguous lines of floating-point dtypes of at most 32 bits; for others it keeps all
  // elements.
  Sieve(ScalarType dtype, std::int64_t stride, bool largest)
      : dtype_(stride == 1 ? dtype : ScalarType::kInt64), largest_(largest) {}

  // The first element from `from` on that may be better than `bound`; `size` if there is none.
  template <typename Bits>
  std::int64_t Next(const Bits* line, std::int64_t from, std::int64_t size, Bits bound) const {
    if constexpr (sizeof(Bits) == 4) {
      if (dtype_ == ScalarType::kFloat32) {
        const SortKernels& kernels = Kernels();
        return (largest_ ? kernels.find_greater : kernels.find_less)(
            reinterpret_cast<const float*>(line), from, size, std::bit_cast<float>(bound));
      }
    } else if constexpr (sizeof(Bits) == 2) {
      if (dtype_ == ScalarType::kFloat16 || dtype_ == ScalarType::kBFloat16) {
        const std::uint16_t infinity = dtype_ == ScalarType::kFloat16 ? 0x7c00 : 0x7f80;
        const SortKernels& kernels = Kernels();
        return (largest_ ? kernels.find_greater16 : kernels.find_less16)(line, from, size, bound,
                                                                         infinity);
      }
    }
    return from;
  }

 private:
  static const SortKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kSort); }

  ScalarType dtype_;
  bool largest_;
};

// Finds the k best elements in one pass over a line. When `room` candidates have been collected,
// they are reduced to k, and the worst of these becomes the bound for the elements that follow.
template <typename Packed, typename Bits>
void TopOfLine(const SortLine<Bits>& line, const KeyRule& rule, const Sieve& sieve, std::int64_t k,
               Packed* items, std::int64_t room) {
  rule.PackLine(line.in, line.in_stride, room, items);
  std::int64_t count = room;
  for (std::int64_t i = room; i < line.size;) {
    SelectSmallest(items, count, k);
    count = k;
    const Packed bound = items[k - 1];
    const Bits bound_bits = line.at(IndexOf(bound));
    const bool sift = !rule.IsNan(bound_bits);
    for (; i < line.size && count < room; ++i) {
      if (sift) i = sieve.Next(line.in, i, line.size, bound_bits);
      if (i == line.size) break;
      const Packed item = rule.Pack<Packed>(line.at(i), i);
      if (item < bound) items[count++] = item;
    }
  }
  SortSmallest(items, count, k);
  for (std::int64_t i = 0; i < k; ++i) line.Put(i, IndexOf(items[i]));
}

Selected TopK(const Tensor& self, std::int64_t k, std::int64_t dim, bool largest) {
  dim = WrapDim(dim, self.rank());
  const std::int64_t size = SizeAt(self, dim);
  Require(k >= 0 && k <= size, "topk: k is ", k, ", must be in 0..", size, ", the size of dim ",
          dim);
  const SizesWith sizes(self.sizes(), dim, k);
  Selected out = {Empty(self.dtype(), sizes), Empty(ScalarType::kInt64, sizes)};
  if (k == 0) return out;
  const KeyRule rule(self.dtype(), /*descending=*/largest);
  const Sieve sieve(self.dtype(), StrideAt(self, dim), largest);
  const std::int64_t room = std::min(std::max<std::int64_t>(4 * k, 512), size);
  ForEachSortLine(self, dim, out, room,
                  [&]<typename Bits, typename Packed>(const SortLine<Bits>& line, Packed* items) {
                    TopOfLine(line, rule, sieve, k, items, room);
                  });
  return out;
}

void Return(Selected result, AtenTensorHandle* values, AtenTensorHandle* indices) {
  *values = result.values.release();
  *indices = result.indices.release();
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;
using aoti::slim::Return;

extern "C" {

AOTITorchError aoti_torch_cpu_sort(AtenTensorHandle self, int64_t dim, int32_t descending,
                                   AtenTensorHandle* ret0, AtenTensorHandle* ret1) {
  return Guarded([&] { Return(aoti::slim::Sort(*self, dim, descending != 0), ret0, ret1); });
}

AOTITorchError aoti_torch_cpu_sort_stable(AtenTensorHandle self, int32_t* /*stable: always*/,
                                          int64_t dim, int32_t descending, AtenTensorHandle* ret0,
                                          AtenTensorHandle* ret1) {
  return Guarded([&] { Return(aoti::slim::Sort(*self, dim, descending != 0), ret0, ret1); });
}

AOTITorchError aoti_torch_cpu_topk(AtenTensorHandle self, int64_t k, int64_t dim, int32_t largest,
                                   int32_t /*sorted: always*/, AtenTensorHandle* ret0,
                                   AtenTensorHandle* ret1) {
  return Guarded([&] { Return(aoti::slim::TopK(*self, k, dim, largest != 0), ret0, ret1); });
}

}  // extern "C"
