// Helpers for pooling operators: shapes with up to three spatial dims, and the windows of the
// results.

#ifndef AOTI_RUNTIME_SLIM_OPS_POOLING_H_
#define AOTI_RUNTIME_SLIM_OPS_POOLING_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/core/parallel.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// The sizes of a tensor [batch, channel, (depth, height,) width]; the batch may be missing.
struct PoolShape {
  PoolShape(const char* name, const Tensor& tensor, int dims) {
    const std::int64_t rank = tensor.rank();
    Require(rank == dims + 1 || rank == dims + 2, name, ": the input has ", rank,
            " dims, must have ", dims + 1, " or ", dims + 2);
    batched = rank == dims + 2;
    sizes[0] = batched ? tensor.size(0) : 1;
    strides[0] = batched ? tensor.stride(0) : 0;
    sizes[1] = tensor.size(rank - dims - 1);
    strides[1] = tensor.stride(rank - dims - 1);
    for (int d = 0; d < 3; ++d) {
      const std::int64_t own = rank - 3 + d;
      sizes[d + 2] = d < 3 - dims ? 1 : tensor.size(own);
      strides[d + 2] = d < 3 - dims ? 0 : tensor.stride(own);
    }
  }
  std::int64_t sizes[5];  // batch, channels, depth, height, width
  std::int64_t strides[5];
  bool batched;
};

// The positions begin, begin + step, ... below end that a result reads along one dim, and the size
// by which an average is divided.
struct PoolRange {
  std::int64_t begin, end, step, size;
};

// The ranges of all results, for each dim.
class PoolRanges {
 public:
  explicit PoolRanges(const std::int64_t (&sizes)[3])
      : ranges_(static_cast<std::size_t>(sizes[0] + sizes[1] + sizes[2])) {
    dims_[0] = ranges_.data();
    dims_[1] = dims_[0] + sizes[0];
    dims_[2] = dims_[1] + sizes[1];
  }
  PoolRange& at(int dim, std::int64_t position) { return dims_[dim][position]; }
  const PoolRange& at(int dim, std::int64_t position) const { return dims_[dim][position]; }

 private:
  Scratch<PoolRange> ranges_;
  PoolRange* dims_[3];
};

// Two or three numbers, one per dim, extended to three; `list` may have one number for all dims.
struct PoolNumbers {
  PoolNumbers(const char* name, const char* what, Ints list, int dims, std::int64_t missing) {
    Require(list.size() == 1 || list.size() == static_cast<std::size_t>(dims), name, ": ", what,
            " has ", list.size(), " numbers, must have ", dims);
    for (int d = 0; d < 3; ++d) {
      const int own = d - (3 - dims);
      values[d] = own < 0 ? missing : list[list.size() == 1 ? 0 : static_cast<std::size_t>(own)];
    }
  }
  std::int64_t values[3];
};

// An empty result with the spatial sizes `out` for an input.
inline TensorPtr EmptyPooled(const PoolShape& in, ScalarType dtype, const std::int64_t (&out)[3],
                             int dims, bool channels_last) {
  std::int64_t sizes[5] = {in.sizes[0], in.sizes[1]};
  for (int d = 0; d < dims; ++d) sizes[d + 2] = out[d + 3 - dims];
  std::int64_t strides[5];
  std::int64_t next = 1;
  if (channels_last) {
    strides[1] = next;
    next = CheckedProduct(next, std::max<std::int64_t>(sizes[1], 1));
  }
  for (int d = dims + 1; d >= 0; --d) {
    if (d == 1 && channels_last) continue;
    strides[d] = next;
    next = CheckedProduct(next, std::max<std::int64_t>(sizes[d], 1));
  }
  const std::size_t first = in.batched ? 0 : 1;
  const auto count = static_cast<std::size_t>(dims + 2) - first;
  return EmptyStrided(dtype, Ints(sizes + first, count), Ints(strides + first, count));
}

// The number of channels that are processed together if they are contiguous.
inline constexpr std::int64_t kPoolChannels = 32;

// Calls body(n, channel, channels, d, h) for each row of `out` and each group of channels.
template <typename Body>
void ForEachPoolRow(const PoolShape& in, const PoolShape& out, const Body& body) {
  const std::int64_t group = in.strides[1] == 1 ? kPoolChannels : 1;
  const std::int64_t groups = (out.sizes[1] + group - 1) / group;
  const std::int64_t rows = out.sizes[0] * groups * out.sizes[2] * out.sizes[3];
  const std::int64_t work = std::max<std::int64_t>(out.sizes[4] * group, 1);
  internal::ParallelFor(0, rows, 8192 / work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t h = row % out.sizes[3];
      const std::int64_t d = row / out.sizes[3] % out.sizes[2];
      const std::int64_t channel = row / out.sizes[3] / out.sizes[2] % groups * group;
      const std::int64_t n = row / out.sizes[3] / out.sizes[2] / groups;
      body(n, channel, std::min(group, out.sizes[1] - channel), d, h);
    }
  });
}

// Calls body(offset, index) for each position in a window: the offset in elements, and the index in
// a contiguous image.
template <typename Body>
void ForEachInWindow(const PoolShape& in, const PoolRange& depth, const PoolRange& height,
                     const PoolRange& width, const Body& body) {
  for (std::int64_t z = depth.begin; z < depth.end; z += depth.step) {
    for (std::int64_t y = height.begin; y < height.end; y += height.step) {
      for (std::int64_t x = width.begin; x < width.end; x += width.step) {
        body(z * in.strides[2] + y * in.strides[3] + x * in.strides[4],
             (z * in.sizes[3] + y) * in.sizes[4] + x);
      }
    }
  }
}

// The greatest value of each window and its index, for `channels` channels from `channel` on of row
// d, h. NaN counts as greater than any number.
template <typename T>
void MaxPoolRow(const PoolShape& in, const T* from, const PoolShape& out, T* to,
                std::int64_t* indices, const PoolRanges& ranges, std::int64_t n,
                std::int64_t channel, std::int64_t channels, std::int64_t d, std::int64_t h) {
  const PoolRange& depth = ranges.at(0, d);
  const PoolRange& height = ranges.at(1, h);
  from += n * in.strides[0] + channel * in.strides[1];
  const std::int64_t row =
      n * out.strides[0] + channel * out.strides[1] + d * out.strides[2] + h * out.strides[3];
  for (std::int64_t w = 0; w < out.sizes[4]; ++w) {
    const PoolRange& width = ranges.at(2, w);
    T best[kPoolChannels];
    std::int64_t at[kPoolChannels];
    using Limits = std::numeric_limits<T>;
    const T least = Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    std::fill_n(best, channels, least);
    std::fill_n(at, channels,
                (depth.begin * in.sizes[3] + height.begin) * in.sizes[4] + width.begin);
    ForEachInWindow(in, depth, height, width, [&](std::int64_t offset, std::int64_t index) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const T value = from[offset + c * in.strides[1]];
        if (value > best[c] || value != value) {
          best[c] = value;
          at[c] = index;
        }
      }
    });
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t offset = row + w * out.strides[4] + c * out.strides[1];
      to[offset] = best[c];
      indices[offset] = at[c];
    }
  }
}

// The sum over each window divided by the product of the ranges' sizes, or by `divisor` if it is
// not 0. An empty window results in 0.
template <typename T>
void AveragePoolRow(const PoolShape& in, const T* from, const PoolShape& out, T* to,
                    const PoolRanges& ranges, std::int64_t divisor, std::int64_t n,
                    std::int64_t channel, std::int64_t channels, std::int64_t d, std::int64_t h) {
  const PoolRange& depth = ranges.at(0, d);
  const PoolRange& height = ranges.at(1, h);
  from += n * in.strides[0] + channel * in.strides[1];
  to += n * out.strides[0] + channel * out.strides[1] + d * out.strides[2] + h * out.strides[3];
  using Sum = Accumulator<T>;
  for (std::int64_t w = 0; w < out.sizes[4]; ++w) {
    const PoolRange& width = ranges.at(2, w);
    Sum sums[kPoolChannels] = {};
    ForEachInWindow(in, depth, height, width, [&](std::int64_t offset, std::int64_t) {
      for (std::int64_t c = 0; c < channels; ++c) {
        sums[c] = Plus(sums[c], static_cast<Sum>(from[offset + c * in.strides[1]]));
      }
    });
    const std::int64_t size = divisor != 0 ? divisor : depth.size * height.size * width.size;
    for (std::int64_t c = 0; c < channels; ++c) {
      to[w * out.strides[4] + c * out.strides[1]] =
          static_cast<T>(size == 0 ? Sum(0) : sums[c] / static_cast<Sum>(size));
    }
  }
}

// A list that was passed through the C ABI.
inline Ints List(const std::int64_t* data, std::int64_t size) {
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_POOLING_H_
