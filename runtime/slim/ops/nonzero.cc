#include "runtime/slim/ops/nonzero.h"

#include <algorithm>
#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/loops.h"

namespace aoti::slim {
namespace {

// Whether a value is not zero, by its bits; the sign bit of floating-point values is ignored.
class NonZeroTest {
 public:
  explicit NonZeroTest(ScalarType dtype)
      : half_(IsComplex(dtype)), mask_(IsFloating(dtype) || half_ ? Signless(dtype) : kAll) {}

  bool operator()(unsigned __int128 bits) const {  // complex128
    return operator()(static_cast<std::uint64_t>(bits)) || operator()(static_cast<std::uint64_t>(
                                                               bits >> 64));
  }
  template <typename Bits>
  bool operator()(Bits bits) const {
    return (bits & static_cast<Bits>(mask_)) != 0;
  }

 private:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  static std::uint64_t Signless(ScalarType dtype) {
    switch (dtype) {
      case ScalarType::kFloat16:
      case ScalarType::kBFloat16:
        return 0x7fff;
      case ScalarType::kFloat32:
        return 0x7fffffff;
      case ScalarType::kComplex64:
        return 0x7fffffff7fffffff;
      default:
        return kAll >> 1;
    }
  }

  bool half_;
  std::uint64_t mask_;
};

template <typename Visit>  // calls void(bool, ...) for each element in row-major order
void ForEachTested(const Tensor& self, const Visit& visit) {
  const NonZeroTest test(self.dtype());
  DispatchBySize(self.dtype(), [&]<typename Bits>() {
    const Bits* values = self.data<Bits>();
    const LoopPlan<1> plan(self.sizes(), {self.strides()}, Order::kRowMajor);
    if (plan.total() == 0) return;
    plan.Walk(0, plan.total(),
              [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                const Bits* value = values + offsets[0];
                for (std::int64_t i = 0; i < count; ++i, value += steps[0]) visit(test(*value));
              });
  });
}

// Writes the index of the n-th nonzero element along column d to out[d * column + n]. Returns the
// number of nonzero elements; stops after `most`.
std::int64_t WritePlaces(const Tensor& self, std::int64_t* out, std::int64_t most,
                         std::int64_t row_stride, std::int64_t column_stride) {
  const std::int64_t rank = self.rank();
  if (most == 0) return 0;
  // First the flat positions, without a branch; then the index along each dim.
  std::int64_t found = 0;
  Scratch<std::int64_t> flat(static_cast<std::size_t>(most) + 1);
  std::int64_t position = 0;
  ForEachTested(self, [&](bool is_nonzero) {
    flat[static_cast<std::size_t>(found)] = position++;
    found += is_nonzero && found < most;
  });
  if (rank == 1 && row_stride == 1) {
    std::copy_n(flat.data(), found, out);
    return found;
  }
  std::int64_t place[kMaxRank] = {};
  std::int64_t before = 0;
  for (std::int64_t n = 0; n < found; ++n) {
    // Adding to the previous index costs less than a division, since the positions are close
    // together.
    std::int64_t carry = flat[static_cast<std::size_t>(n)] - before;
    before = flat[static_cast<std::size_t>(n)];
    for (std::int64_t d = rank; d-- > 0 && carry > 0;) {
      place[d] += carry;
      carry = 0;
      const std::int64_t size = self.size(d);
      if (place[d] >= 2 * size) {
        carry = place[d] / size;
        place[d] -= carry * size;
      } else if (place[d] >= size) {
        carry = 1;
        place[d] -= size;
      }
    }
    for (std::int64_t d = 0; d < rank; ++d) out[n * row_stride + d * column_stride] = place[d];
  }
  return found;
}

// PyTorch's nonzero_static returns a row-major result.
TensorPtr NonZeroStatic(const Tensor& self, std::int64_t size, std::int64_t fill) {
  Require(size >= 0, "nonzero_static: size is ", size, ", must not be negative");
  const std::int64_t rank = self.rank();
  TensorPtr out = Empty(ScalarType::kInt64, {size, rank});
  auto* places = out->data<std::int64_t>();
  const std::int64_t found = WritePlaces(self, places, std::min(size, self.numel()), rank, 1);
  std::fill(places + found * rank, places + size * rank, fill);
  return out;
}

}  // namespace

std::int64_t CountNonZero(const Tensor& self) {
  std::int64_t count = 0;
  ForEachTested(self, [&](bool is_nonzero) { count += is_nonzero; });
  return count;
}

TensorPtr NonZero(const Tensor& self) {
  const std::int64_t count = CountNonZero(self), rank = self.rank();
  const std::int64_t sizes[] = {count, rank};
  const std::int64_t strides[] = {1, std::max<std::int64_t>(count, 1)};
  TensorPtr out = EmptyStrided(ScalarType::kInt64, sizes, strides);
  WritePlaces(self, out->data<std::int64_t>(), count, 1, strides[1]);
  return out;
}

}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_nonzero(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::NonZero(*self).release(); });
}

AOTITorchError aoti_torch_nonzero(AtenTensorHandle self, AtenTensorHandle* out) {
  return aoti_torch_cpu_nonzero(self, out);
}

AOTITorchError aoti_torch_cpu_nonzero_static(AtenTensorHandle self, int64_t size,
                                             int64_t fill_value, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::NonZeroStatic(*self, size, fill_value).release(); });
}

}  // extern "C"
