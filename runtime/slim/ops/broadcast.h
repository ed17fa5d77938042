// Sizes and strides for operators on several tensors.

#ifndef AOTI_RUNTIME_SLIM_OPS_BROADCAST_H_
#define AOTI_RUNTIME_SLIM_OPS_BROADCAST_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "runtime/slim/ops/loops.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// A short list of numbers, one per dim.
class Shape {
 public:
  Shape() = default;
  explicit Shape(Ints values) { Append(values); }

  void Append(std::int64_t value) {
    Require(size_ < kMaxRank, "a tensor has more than ", kMaxRank, " dims");
    values_[size_++] = value;
  }
  void Append(Ints values) {
    for (const std::int64_t value : values) Append(value);
  }
  std::size_t size() const { return size_; }
  std::int64_t& operator[](std::size_t d) { return values_[d]; }
  std::int64_t operator[](std::size_t d) const { return values_[d]; }
  operator Ints() const { return {values_, size_}; }  // NOLINT: as good as the numbers themselves

 private:
  std::size_t size_ = 0;
  std::int64_t values_[kMaxRank];
};

// The sizes that both can be broadcast to. Throws OpError if there are none.
Shape BroadcastSizes(Ints a, Ints b);

// The strides of a tensor with sizes `own` when it is broadcast to `sizes`.
Shape BroadcastStrides(Ints own, Ints strides, Ints sizes);
inline Shape BroadcastStrides(const Tensor& tensor, Ints sizes) {
  return BroadcastStrides(tensor.sizes(), tensor.strides(), sizes);
}

// The strides that PyTorch gives to the result of an elementwise operator: dense, with the order of
// dims of the first operands. The operands are broadcast to `sizes`.
Shape ResultStrides(Ints sizes, const Shape* operands, std::size_t count);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_BROADCAST_H_
