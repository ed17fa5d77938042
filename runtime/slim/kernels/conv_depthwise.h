// The rows of a DepthwiseJob.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

inline int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// One row of output pixels.
struct DepthwiseRow {
  const DepthwiseJob& job;
  const float* in;  // of the batch
  float* out;
  int64_t at[2];  // depth and height of the input row of tap 0, 0
  int64_t padded_channels;
};

// A vector of channels, `lanes` of them in use, of kPixels pixels from `x` on. kWidth and kStep are
// the filter's width and the row's step where known, else 0. kChecked: taps may lie left or right of
// the image.
template <int kPixels, int kWidth, int kStep, bool kChecked>
inline void DepthwisePixels(const DepthwiseRow& row, int64_t x, int64_t channel, int lanes) {
  const DepthwiseJob& job = row.job;
  VecF bias = {};
  if (job.bias != nullptr) {
    bias = lanes == kLanes ? Load(job.bias + channel) : LoadPart(job.bias + channel, lanes);
  }
  VecF sums[kPixels];
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) sums[i] = bias;
  const int64_t width = kWidth > 0 ? kWidth : job.kernel[2];
  const int64_t step = kStep > 0 ? kStep : job.steps[2];
  const int64_t dilation = kWidth > 0 ? 1 : job.dilation[2];
  const int64_t x0 = x * step - job.padding[2];
  const int64_t stride = job.in_strides[3];
  for (int64_t kd = 0; kd < job.kernel[0]; ++kd) {
    const int64_t d = row.at[0] + kd * job.dilation[0];
    if (d < 0 || d >= job.in_sizes[0]) continue;
    for (int64_t kh = 0; kh < job.kernel[1]; ++kh) {
      const int64_t h = row.at[1] + kh * job.dilation[1];
      if (h < 0 || h >= job.in_sizes[1]) continue;
      const float* in = row.in + d * job.in_strides[1] + h * job.in_strides[2] + x0 * stride + channel;
      const float* weights =
          job.weights + (kd * job.kernel[1] + kh) * width * row.padded_channels + channel;
#pragma GCC unroll 8
      for (int64_t kw = 0; kw < width; ++kw) {
        const VecF w = Load(weights + kw * row.padded_channels);
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) {
          const int64_t offset = i * step + kw * dilation;
          if constexpr (kChecked) {
            if (x0 + offset < 0 || x0 + offset >= job.in_sizes[2]) continue;
          }
          const float* from = in + offset * stride;
          const VecF a = lanes == kLanes ? Load(from) : LoadPart(from, lanes);
          sums[i] = Fma(a, w, sums[i]);
        }
      }
    }
  }
  float* out = row.out + x * job.out_strides[3] + channel;
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    if (lanes == kLanes) {
      Store(out + i * job.out_strides[3], sums[i]);
    } else {
      StorePart(out + i * job.out_strides[3], sums[i], lanes);
    }
  }
}

template <int kWidth, int kStep>
void DepthwiseRowOf(const DepthwiseRow& row) {
  constexpr int kPixels = kWidth == 0 ? 1 : 4;
  const DepthwiseJob& job = row.job;
  const int64_t size = job.grid[3];
  // Output pixels left..right see only pixels of the image.
  const int64_t step = job.steps[2];
  const int64_t reach = (job.kernel[2] - 1) * job.dilation[2] - job.padding[2];
  int64_t left = (job.padding[2] + step - 1) / step;
  int64_t right = job.in_sizes[2] - reach > 0 ? (job.in_sizes[2] - reach - 1) / step + 1 : 0;
  if (right > size) right = size;
  if (left > right) left = right;
  const int64_t whole = job.channels / kLanes * kLanes;
  for (int64_t channel = 0; channel < whole; channel += kLanes) {
    int64_t x = 0;
    for (; x < left; ++x) DepthwisePixels<1, 0, 0, true>(row, x, channel, kLanes);
    for (; x + kPixels <= right; x += kPixels) {
      DepthwisePixels<kPixels, kWidth, kStep, false>(row, x, channel, kLanes);
    }
    for (; x < size; ++x) DepthwisePixels<1, 0, 0, true>(row, x, channel, kLanes);
  }
  if (whole < job.channels) {
    const auto lanes = static_cast<int>(job.channels - whole);
    for (int64_t x = 0; x < size; ++x) DepthwisePixels<1, 0, 0, true>(row, x, whole, lanes);
  }
}

void RunDepthwise(const DepthwiseJob& job, int64_t first, int64_t last) {
  auto* run = DepthwiseRowOf<0, 0>;
  if (job.dilation[2] == 1 && job.kernel[2] == 3 && job.steps[2] == 1) run = DepthwiseRowOf<3, 1>;
  if (job.dilation[2] == 1 && job.kernel[2] == 3 && job.steps[2] == 2) run = DepthwiseRowOf<3, 2>;
  if (job.dilation[2] == 1 && job.kernel[2] == 5 && job.steps[2] == 1) run = DepthwiseRowOf<5, 1>;
  if (job.dilation[2] == 1 && job.kernel[2] == 5 && job.steps[2] == 2) run = DepthwiseRowOf<5, 2>;
  for (int64_t i = first; i < last; ++i) {
    const int64_t h = i % job.grid[2];
    const int64_t d = i / job.grid[2] % job.grid[1];
    const int64_t n = i / job.grid[2] / job.grid[1];
    run({job,
         job.in + n * job.in_strides[0],
         job.out + n * job.out_strides[0] + d * job.out_strides[1] + h * job.out_strides[2],
         {d * job.steps[0] - job.padding[0], h * job.steps[1] - job.padding[1]},
         RoundUp(job.channels, kConvBlock)});
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_
