#include "runtime/slim/ops/broadcast.h"

#include <algorithm>
#include <utility>

namespace aoti::slim {

Shape BroadcastSizes(Ints a, Ints b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape sizes(a);
  const std::size_t shift = a.size() - b.size();
  for (std::size_t d = 0; d < b.size(); ++d) {
    std::int64_t& size = sizes[d + shift];
    Require(size == b[d] || size == 1 || b[d] == 1, "sizes ", size, " and ", b[d],
            " of a dim can't be broadcast to each other");
    if (size == 1) size = b[d];
  }
  return sizes;
}

Shape BroadcastStrides(Ints own, Ints strides, Ints sizes) {
  Require(own.size() <= sizes.size(), "a tensor of rank ", own.size(),
          " can't be broadcast to rank ", sizes.size());
  const std::size_t shift = sizes.size() - own.size();
  Shape result;
  for (std::size_t d = 0; d < shift; ++d) result.Append(0);
  for (std::size_t d = 0; d < own.size(); ++d) {
    const std::int64_t size = sizes[d + shift];
    Require(own[d] == size || own[d] == 1, "a dim of size ", own[d], " can't be broadcast to ",
            size);
    result.Append(own[d] == 1 && size != 1 ? 0 : strides[d]);
  }
  return result;
}

namespace {

// Negative: dim `a` is further inside than `b`; zero: no operand orders them.
int CompareDims(Ints sizes, const Shape* operands, std::size_t count, std::size_t a,
                std::size_t b) {
  for (std::size_t t = 0; t < count; ++t) {
    const std::int64_t stride_a = operands[t][a], stride_b = operands[t][b];
    if (stride_a == 0 || stride_b == 0) continue;
    if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

Shape ResultStrides(Ints sizes, const Shape* operands, std::size_t count) {
  const std::size_t rank = sizes.size();
  // An insertion sort that skips dims without an order, as PyTorch's does.
  std::size_t order[kMaxRank];
  for (std::size_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
  for (std::size_t i = 1; i < rank; ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int comparison = CompareDims(sizes, operands, count, order[j], order[moving]);
      if (comparison < 0) break;
      if (comparison > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      }
    }
  }
  Shape strides(sizes);
  std::int64_t next = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    strides[order[i]] = next;
    next *= std::max<std::int64_t>(sizes[order[i]], 1);
  }
  return strides;
}

}  // namespace aoti::slim
