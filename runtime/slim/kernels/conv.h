// The inner loops of convolutions, compiled once per CpuLevel.
//
// Images are "channels last": the channels of a pixel lie next to each other. Weights are packed as
// conv/pack.h says.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

// Output channels that lie next to each other in packed weights.
constexpr int64_t kConvBlock = 32;
// The largest group of a DepthwiseJob.
constexpr int64_t kSmallGroup = 8;

// One position of the filter.
struct ConvTap {
  int64_t at[3];  // of its input pixel, relative to that of the output pixel: depth, height, width
  int64_t weights;  // from the start of a block of weights
};

// out[pixel][channel] = bias[channel] + sum over taps and input channels, as a matrix product whose
// left rows are read where they lie in the image.
struct ConvJob {
  const float* in;
  const float* zeros;  // `inner` of them, for pixels outside of the image
  float* out;
  const float* weights;
  const float* bias;  // may be null
  const ConvTap* taps;
  int64_t tap_count;
  int64_t inner;          // neighbouring floats that belong to a tap
  int64_t in_strides[4];  // batch, depth, height, width
  int64_t in_sizes[3];
  int64_t steps[3];  // input pixels per output pixel
  int64_t grid[4];   // output pixels: batch, depth, height, width
  int64_t out_strides[4];
  int64_t low[3], high[3];  // the least and the greatest of the taps' positions
  int64_t channels;         // of the output
  int64_t block_stride;     // floats from one block of weights to the next
  int64_t tiles;            // the grid's pixels are split into as many runs of about one size
};

// Groups of as many output as input channels, few: with one, each channel is on its own.
//   out[pixel][c] = bias[c] + sum over taps and j < group of
//                   in[pixel][c / group * group + j] * weights[tap][j][c]
struct DepthwiseJob {
  const float* in;
  float* out;
  const float* weights;  // [tap][group][channels, rounded up to kConvBlock]
  const float* bias;     // may be null
  int64_t channels;
  int64_t group;  // channels of one: a power of two
  int64_t kernel[3], steps[3], padding[3], dilation[3];
  int64_t in_sizes[3];
  int64_t in_strides[4];
  int64_t grid[4];
  int64_t out_strides[4];
};

struct ConvKernels {
  int64_t tile;  // pixels of a tile, at most
  // The tiles first..last for the blocks of channels block..block_end.
  void (*tiles)(const ConvJob& job, int64_t first, int64_t last, int64_t block, int64_t block_end);
  // The rows first..last of batch * depth * height rows.
  void (*depthwise)(const DepthwiseJob& job, int64_t first, int64_t last);
  // to[column * to_stride + row] = from[row * from_stride + column]
  void (*transpose)(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                    int64_t rows, int64_t columns);
};

AOTI_SLIM_DECLARE_KERNELS(ConvKernels, kConv)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_H_
