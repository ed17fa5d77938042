// The lines of a tensor along a dim, for operators that sort lines.

#ifndef AOTI_RUNTIME_SLIM_OPS_SORT_LINES_H_
#define AOTI_RUNTIME_SLIM_OPS_SORT_LINES_H_

#include <cstdint>

#include "runtime/slim/ops/loops.h"
#include "runtime/slim/ops/sort_keys.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

struct Selected {
  TensorPtr values;
  TensorPtr indices;
};

// One line of the input and of both results.
template <typename Bits>
struct SortLine {
  static constexpr int kKeyBits = sizeof(Bits) * CHAR_BIT;

  const Bits* in;
  std::int64_t in_stride;
  std::int64_t size;
  Bits* values;
  std::int64_t values_stride;
  std::int64_t* indices;
  std::int64_t indices_stride;

  Bits at(std::int64_t index) const { return in[index * in_stride]; }
  void Put(std::int64_t place, std::int64_t index) const {
    values[place * values_stride] = at(index);
    indices[place * indices_stride] = index;
  }
};

// Calls body(line, items) for each line of `self` along `dim`; `items` is an array for `room`
// packed elements.
template <typename Body>
void ForEachSortLine(const Tensor& self, std::int64_t dim, const Selected& out, std::int64_t room,
                     const Body& body) {
  const std::int64_t size = SizeAt(self, dim);
  DispatchSortable(self.dtype(), size, [&]<typename Bits, typename Packed>() {
    const SortLine<Bits> first = {
        self.data<Bits>(),          StrideAt(self, dim),        size,
        out.values->data<Bits>(),   StrideAt(*out.values, dim), out.indices->data<std::int64_t>(),
        StrideAt(*out.indices, dim)};
    ForEachRun(SizesWith(self.sizes(), dim, 1),
               {self.strides(), out.values->strides(), out.indices->strides()}, Order::kRowMajor,
               LineGrain(size * 8),
               [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                 Scratch<Packed> items(static_cast<std::size_t>(room));
                 for (std::int64_t i = 0; i < count; ++i) {
                   SortLine<Bits> line = first;
                   line.in += offsets[0] + i * steps[0];
                   line.values += offsets[1] + i * steps[1];
                   line.indices += offsets[2] + i * steps[2];
                   body(line, items.data());
                 }
               });
  });
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_SORT_LINES_H_
