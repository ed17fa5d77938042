// The input of a convolution as its kernels read it.

#ifndef AOTI_RUNTIME_SLIM_CONV_IMAGE_H_
#define AOTI_RUNTIME_SLIM_CONV_IMAGE_H_

#include <algorithm>
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

// An image with contiguous channels. In its pixels are those of all groups, or each group has an
// image of its own.
struct Image {
  const float* data;
  std::int64_t sizes[3];
  std::int64_t strides[4];  // batch, depth, height, width
  std::int64_t group;       // from the channels of one group to those of the next
};

// Copies the input so that its channels are contiguous. pad: adds the zeros of the padding;
// `problem` then has no padding any more. apart: each group has an image of its own.
class ImageCopy {
 public:
  ImageCopy(const ConvProblem& problem, ConvArray<const float> in, bool pad, bool apart)
      : groups_(apart ? problem.groups : 1),
        group_channels_(problem.in_channels),
        channels_(problem.groups / groups_ * problem.in_channels) {
    for (int d = 0; d < 3; ++d) {
      before_[d] = pad ? problem.padding[d] : 0;
      // With a large stride, there are rows between those that are read.
      const std::int64_t reach = (problem.kernel[d] - 1) * problem.dilation[d] + 1;
      if (pad && !problem.transposed && reach < problem.stride[d]) {
        stride_[d] = problem.stride[d];
        reach_[d] = reach;
      }
      sizes_[d] = problem.in[d];
      if (pad) {
        sizes_[d] = (problem.out[d] - 1) * problem.stride[d] +
                    (problem.kernel[d] - 1) * problem.dilation[d] + 1;
      }
    }
    rows_ = problem.batch * sizes_[0] * sizes_[1];
    const std::int64_t width = sizes_[2] * channels_;
    data_.emplace(static_cast<std::size_t>(groups_ * rows_ * width));
    internal::ParallelFor(0, rows_, kCopyGrain / std::max<std::int64_t>(groups_ * width, 1),
                          [&](std::int64_t first, std::int64_t last) {
                            for (std::int64_t row = first; row < last; ++row) {
                              for (std::int64_t group = 0; group < groups_; ++group) {
                                CopyRow(problem, in, row, group);
                              }
                            }
                          });
  }

  Image image() const {
    const std::int64_t row = sizes_[2] * channels_;
    return {data_->data(),
            {sizes_[0], sizes_[1], sizes_[2]},
            {row * sizes_[1] * sizes_[0], row * sizes_[1], row, channels_},
            groups_ > 1 ? rows_ * row : group_channels_};
  }

 private:
  void CopyRow(const ConvProblem& problem, ConvArray<const float> in, std::int64_t row,
               std::int64_t group) {
    const std::int64_t width = sizes_[2] * channels_;
    float* to = data_->data() + (group * rows_ + row) * width;
    if (row % sizes_[1] % stride_[1] >= reach_[1]) return;
    const std::int64_t h = row % sizes_[1] - before_[1];
    const std::int64_t d = row / sizes_[1] % sizes_[0] - before_[0];
    const std::int64_t n = row / sizes_[1] / sizes_[0];
    if (h < 0 || h >= problem.in[1] || d < 0 || d >= problem.in[0]) {
      std::fill(to, to + width, 0.0f);
      return;
    }
    const float* from = in.data + n * in.strides[0] + d * in.strides[2] + h * in.strides[3] +
                        group * channels_ * in.strides[1];
    const std::int64_t pixels = std::min(problem.in[2], sizes_[2] - before_[2]);
    float* inside = to + before_[2] * channels_;
    float* after = inside + pixels * channels_;
    std::fill(to, inside, 0.0f);
    std::fill(after, to + width, 0.0f);
    if (in.strides[1] == 1 && in.strides[4] == channels_) {
      std::memcpy(inside, from, static_cast<std::size_t>(pixels * channels_) * sizeof(float));
    } else if (in.strides[1] == 1) {
      CopyPixels(from, in.strides[4], pixels, inside);
    } else if (in.strides[4] == 1) {
      AOTI_SLIM_CURRENT_KERNELS(kConv).transpose(from, in.strides[1], inside, channels_, channels_,
                                                 pixels);
    } else {
      for (std::int64_t w = 0; w < pixels; ++w) {
        for (std::int64_t c = 0; c < channels_; ++c) {
          inside[w * channels_ + c] = from[w * in.strides[4] + c * in.strides[1]];
        }
      }
    }
  }

  // Copies pixels that are `step` apart next to each other.
  void CopyPixels(const float* from, std::int64_t step, std::int64_t pixels, float* to) {
    // A call of memcpy() would take longer than it copies.
    switch (channels_) {
      case 4:
        return CopyChannels<4>(from, step, pixels, to);
      case 8:
        return CopyChannels<8>(from, step, pixels, to);
      case 16:
        return CopyChannels<16>(from, step, pixels, to);
      case 24:
        return CopyChannels<24>(from, step, pixels, to);
      case 32:
        return CopyChannels<32>(from, step, pixels, to);
      default:
        for (; pixels > 0; --pixels, from += step, to += channels_) {
          std::copy_n(from, channels_, to);
        }
    }
  }

  template <int kChannels>
  static void CopyChannels(const float* from, std::int64_t step, std::int64_t pixels, float* to) {
    for (; pixels > 0; --pixels, from += step, to += kChannels) {
      std::memcpy(to, from, kChannels * sizeof(float));
    }
  }

  std::int64_t groups_;          // with an image of their own
  std::int64_t group_channels_;  // of a group of the convolution
  std::int64_t channels_;        // of a pixel
  std::int64_t before_[3];
  std::int64_t stride_[3] = {1, 1, 1};
  std::int64_t reach_[3] = {1, 1, 1};  // of `stride_` rows, so many are read
  std::int64_t sizes_[3];
  std::int64_t rows_;
  std::optional<Scratch<float>> data_;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_IMAGE_H_
