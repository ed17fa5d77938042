// The input of a convolution as its kernels read it.

#ifndef AOTI_RUNTIME_SLIM_CONV_IMAGE_H_
#define AOTI_RUNTIME_SLIM_CONV_IMAGE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

// The least number of floats for a thread to copy.
constexpr std::int64_t kCopyGrain = 1 << 15;

// An image with contiguous channels: in its pixels are those of all groups.
struct Image {
  const float* data;
  std::int64_t sizes[3];
  std::int64_t strides[4];  // batch, depth, height, width
  std::int64_t group;       // from the channels of one group to those of the next
};

// An image without gaps. channels: of a pixel. group: of a group of the convolution.
inline Image ContiguousImage(const float* data, const std::int64_t (&sizes)[3],
                             std::int64_t channels, std::int64_t group) {
  const std::int64_t row = sizes[2] * channels;
  return {data,
          {sizes[0], sizes[1], sizes[2]},
          {row * sizes[1] * sizes[0], row * sizes[1], row, channels},
          group};
}

// Copies pixels of kChannels channels each, that are `step` apart, next to each other.
template <int kChannels>
void CopyFewChannels(const float* from, std::int64_t step, std::int64_t pixels, float* to) {
  for (; pixels > 0; --pixels, from += step, to += kChannels) {
    std::memcpy(to, from, kChannels * sizeof(float));
  }
}

// How the pixels of a row lie. Strides in elements.
struct PixelRow {
  std::int64_t pixel_stride, channel_stride;
  std::int64_t channels;  // or pairs of them
  bool odd = false;       // whether the last pair has only its first number
};

// Copies a row of pixels, so that they and their channels are contiguous.
inline void CopyPixels(const float* from, const PixelRow& row, std::int64_t pixels, float* to) {
  const auto [pixel_stride, channel_stride, channels, odd] = row;
  if (channel_stride == 1 && pixel_stride == channels) {
    std::memcpy(to, from, static_cast<std::size_t>(pixels * channels) * sizeof(float));
  } else if (channel_stride == 1) {
    // A call of memcpy() would take longer than it copies.
    switch (channels) {
      case 4:
        return CopyFewChannels<4>(from, pixel_stride, pixels, to);
      case 8:
        return CopyFewChannels<8>(from, pixel_stride, pixels, to);
      case 16:
        return CopyFewChannels<16>(from, pixel_stride, pixels, to);
      case 24:
        return CopyFewChannels<24>(from, pixel_stride, pixels, to);
      case 32:
        return CopyFewChannels<32>(from, pixel_stride, pixels, to);
      default:
        for (; pixels > 0; --pixels, from += pixel_stride, to += channels) {
          std::copy_n(from, channels, to);
        }
    }
  } else if (pixel_stride == 1) {
    AOTI_SLIM_CURRENT_KERNELS(kConv).transpose(from, channel_stride, to, channels, channels,
                                               pixels);
  } else {
    for (std::int64_t w = 0; w < pixels; ++w) {
      for (std::int64_t c = 0; c < channels; ++c) {
        to[w * channels + c] = from[w * pixel_stride + c * channel_stride];
      }
    }
  }
}

// The same from bfloat16 to pairs.
inline void CopyPixels(const std::uint16_t* from, const PixelRow& row, std::int64_t pixels,
                       float* to) {
  for (std::int64_t p = 0; p < row.channels; ++p, from += 2 * row.channel_stride) {
    const bool alone = row.odd && p + 1 == row.channels;
    for (std::int64_t w = 0; w < pixels; ++w) {
      const std::uint16_t* at = from + w * row.pixel_stride;
      const std::uint32_t second = alone ? 0 : at[row.channel_stride];
      to[w * row.channels + p] = std::bit_cast<float>(*at | second << 16);
    }
  }
}

// Copies a row of pixels, from number -before on, to a row of `width` pixels; those before the
// first one and behind the last one are zeros. from: the first pixel; null for a row of zeros.
template <typename T>
void CopyPadded(const T* from, const PixelRow& row, std::int64_t pixels, std::int64_t before,
                std::int64_t width, float* to) {
  const std::int64_t first = std::max<std::int64_t>(-before, 0);
  const std::int64_t begin = from == nullptr ? width : std::clamp<std::int64_t>(before, 0, width);
  const std::int64_t end = std::clamp(before + pixels, begin, width);
  std::fill(to, to + begin * row.channels, 0.0f);
  std::fill(to + end * row.channels, to + width * row.channels, 0.0f);
  if (begin < end) {
    CopyPixels(from + first * row.pixel_stride, row, end - begin, to + begin * row.channels);
  }
}

// How many pixels of dim `d` the first `count` results reach, zeros around the image included.
inline std::int64_t Reach(const ConvProblem& problem, int d, std::int64_t count) {
  return (count - 1) * problem.stride[d] + (problem.kernel[d] - 1) * problem.dilation[d] + 1;
}

// Copies the input, of floats or of bfloat16 that become pairs, so that its channels are
// contiguous. pad: adds the zeros of the padding.
class ImageCopy {
 public:
  template <typename T>
  ImageCopy(const ConvProblem& problem, ConvArray<const T> in, bool pad)
      : pad_(pad), group_(problem.in_channels), channels_(problem.groups * problem.in_channels) {
    for (int d = 0; d < 3; ++d) {
      before_[d] = pad ? problem.padding[d] : 0;
      // With a large stride, there are rows between those that are read.
      const std::int64_t reach = Reach(problem, d, 1);
      if (pad && !problem.transposed && reach < problem.stride[d]) {
        stride_[d] = problem.stride[d];
        reach_[d] = reach;
      }
      sizes_[d] = pad ? Reach(problem, d, problem.out[d]) : problem.in[d];
    }
    const std::int64_t rows = problem.batch * sizes_[0] * sizes_[1];
    const std::int64_t width = sizes_[2] * channels_;
    data_.emplace(static_cast<std::size_t>(rows * width));
    internal::ParallelFor(0, rows, kCopyGrain / std::max<std::int64_t>(width, 1),
                          [&](std::int64_t first, std::int64_t last) {
                            for (std::int64_t row = first; row < last; ++row) {
                              CopyRow(problem, in, row);
                            }
                          });
  }

  Image image() const { return ContiguousImage(data_->data(), sizes_, channels_, group_); }

  // Makes the problem that of the copy: with `pad`, there is no padding any more.
  void Adjust(ConvProblem& problem) const {
    for (int d = 0; d < 3 && pad_; ++d) {
      problem.padding[d] = 0;
      problem.in[d] = sizes_[d];
    }
    problem.odd = false;
  }

 private:
  template <typename T>
  void CopyRow(const ConvProblem& problem, ConvArray<const T> in, std::int64_t row) {
    if (row % sizes_[1] % stride_[1] >= reach_[1]) return;
    const std::int64_t h = row % sizes_[1] - before_[1];
    const std::int64_t d = row / sizes_[1] % sizes_[0] - before_[0];
    const std::int64_t n = row / sizes_[1] / sizes_[0];
    const bool inside = h >= 0 && h < problem.in[1] && d >= 0 && d < problem.in[0];
    CopyPadded(
        inside ? in.data + n * in.strides[0] + d * in.strides[2] + h * in.strides[3] : nullptr,
        {in.strides[4], in.strides[1], channels_, problem.odd}, problem.in[2], before_[2],
        sizes_[2], data_->data() + row * sizes_[2] * channels_);
  }

  bool pad_;
  std::int64_t group_;     // channels of a group
  std::int64_t channels_;  // of a pixel
  std::int64_t before_[3];
  std::int64_t stride_[3] = {1, 1, 1};
  std::int64_t reach_[3] = {1, 1, 1};  // of `stride_` rows, so many are read
  std::int64_t sizes_[3];
  std::optional<Scratch<float>> data_;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_IMAGE_H_
