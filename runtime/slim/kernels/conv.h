// The inner loops of convolutions, compiled once per CpuLevel.
//
// Images are "channels last": the channels of a pixel are contiguous. Weights are packed as
// described in conv/pack.h.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

// The number of output channels that are contiguous in packed weights.
constexpr int64_t kConvBlock = 32;
// The largest group of a DepthwiseJob.
constexpr int64_t kSmallGroup = 8;

// One position of the filter.
struct ConvTap {
  int64_t at[3];    // the input pixel relative to the output pixel: depth, height, width
  int64_t weights;  // offset in a block of weights
};

// What follows the sums of a convolution, while they are in registers:
//   x = sum * scale[channel] + shift[channel]
//   out = activation(x + residual), or activation(x) + residual if the residual is added last
enum class ConvActivation : int32_t {
  kNone = 0,
  kClamp = 1,  // to low..high; ReLU has 0 and infinity
  kSilu = 2,
  kHardSwish = 3,
  kLeakyRelu = 4,  // `low` is the slope below 0
  kGelu = 5,
};

// What images and weights consist of.
enum class ConvNumbers {
  kFloats,
  // Instead of each float, a pair of bfloat16, those of two input channels (kernels/pairs.h). Sizes
  // and offsets count pairs. A product is then the sum of two, where subnormal numbers are zeros.
  kPairs,
  // Images of floats, and such pairs of weights. Offsets of weights count pairs, and there is an
  // even number of inputs.
  kNarrowWeights,
};

// The number of rows of weights, each of a block of channels, for so many inputs. Always inlined,
// as in rounding.h.
[[gnu::always_inline]] constexpr int64_t WeightRows(ConvNumbers numbers, int64_t inputs) {
  return numbers == ConvNumbers::kNarrowWeights ? inputs / 2 : inputs;
}

// Null pointers stand for ones (scale) and zeros (shift, residual).
struct ConvEpilogue {
  const float* scale = nullptr;
  const float* shift = nullptr;
  // An element for each one of the result, with contiguous channels: of float or of bfloat16, which
  // only `tiles` takes. One of them is null. Only for `tiles` of one group, the one of floats may
  // have fewer channels than the result: the first ones.
  const float* residual = nullptr;
  const uint16_t* narrow_residual = nullptr;
  int64_t residual_strides[4] = {};  // batch, depth, height, width
  int64_t residual_channels = INT64_MAX;
  ConvActivation activation = ConvActivation::kNone;
  bool residual_last = false;
  float low = 0, high = 0;
};

// Always inlined, as in rounding.h.
[[gnu::always_inline]] constexpr bool HasResidual(const ConvEpilogue& epilogue) {
  return epilogue.residual != nullptr || epilogue.narrow_residual != nullptr;
}

// out[pixel][channel] = epilogue(sum over taps and input channels). This is a matrix product
// whose left rows are read from the image in place.
struct ConvJob {
  ConvNumbers numbers;
  const float* in;
  const float* zeros;  // `inner` zeros, for pixels outside the image
  float* out;
  uint16_t* narrow;  // if not null: in place of `out`, for results that are rounded to bfloat16
  const float* weights;
  ConvEpilogue epilogue;
  const ConvTap* taps;
  int64_t tap_count;
  int64_t inner;          // number of contiguous floats of a tap
  int64_t in_strides[4];  // batch, depth, height, width
  int64_t in_sizes[3];
  int64_t steps[3];         // input pixels per output pixel
  int64_t grid[4];          // output pixels: batch, depth, height, width
  int64_t out_strides[4];   // of `out` or `narrow`
  int64_t low[3], high[3];  // the least and the greatest position of a tap
  int64_t channels;         // of the output
  int64_t block_stride;     // floats from one block of weights to the next
  int64_t tiles;          // the number of runs of about equal size into which the pixels are split
  int64_t row_tiles = 0;  // if not 0: those of a row of the grid; no tile is in two rows then
  // Room for the rows of a tile, RowsSize() floats; null: they are read where they lie. With one
  // tap, at 0, 0, 0, and without zeros around the image.
  float* rows = nullptr;
};

// A copied row begins in another set of the caches than the one before it.
constexpr int64_t kRowGap = 16;
constexpr int64_t RowsSize(int64_t tile, int64_t inner) { return tile * (inner + kRowGap); }

// The pairs of inputs that an instruction of AMX multiplies at a time.
constexpr int64_t kAmxPairs = 16;
// The room of `amx_tiles`, in floats: rows and sums of two tiles, and a step's weights.
constexpr int64_t AmxRoomSize(const ConvJob& job, int64_t tile) {
  const int64_t tap = (job.inner + kAmxPairs - 1) / kAmxPairs * kAmxPairs;
  return 2 * (RowsSize(tile, job.tap_count * tap) + tile * kConvBlock) + kAmxPairs * kConvBlock;
}

// Groups with the same small number of input and output channels; with one, each channel is
// separate.
//   out[pixel][c] = epilogue(sum over taps and j < group of
//                            in[pixel][c / group * group + j] * weights[tap][j][c])
struct DepthwiseJob {
  const float* in;
  float* out;
  const float* weights;  // [tap][group][channels, rounded up to kConvBlock]
  ConvEpilogue epilogue;
  int64_t channels;
  int64_t group;  // channels per group: a power of two
  int64_t kernel[3], steps[3], padding[3], dilation[3];
  int64_t in_sizes[3];
  int64_t in_strides[4];
  int64_t grid[4];
  int64_t out_strides[4];
};

// A convolution of images by 3x3 filters with step 1, by Winograd's algorithm F(2x2, 3x3): four
// results, 2x2, take 16 products for each input channel in place of 36. With the matrices A, B, G
// of kernels/conv_winograd.h,
//   results = A' ((G g G') * (B' d B)) A
// where g is a filter, d the 4x4 pixels around the results, and * multiplies elements; it is summed
// over the input channels, and in volumes over the filter's slices. (Lavin and Gray: Fast
// Algorithms for Convolutional Neural Networks, 2015.)
struct WinogradJob {
  const float* in;
  const float* zeros;  // `inner` zeros, for pixels outside the image
  float* out;
  ConvEpilogue epilogue;
  int64_t inner;     // input channels
  int64_t channels;  // of the result
  // Slices of the filter, and the distances between the slices of the input that two of them read,
  // and that two results read: 1, 1, 1 for images.
  int64_t slices, slice_step, depth_step;
  int64_t in_sizes[3], padding[3];        // depth, height, width
  int64_t in_strides[4], out_strides[4];  // batch, depth, height, width
  int64_t grid[4];                        // results: batch, depth, height, width
};
constexpr int64_t kWinogradProducts = 16;

struct ConvKernels {
  bool pairs;     // whether `tiles` can run a job of kPairs, on a CPU with AVX512_BF16
  int64_t tile;   // the greatest number of pixels in a tile
  int64_t lanes;  // of a vector
  // Rows whose distance is a multiple of so many floats are better copied, because they are in the
  // same few sets of the caches.
  int64_t crowded;
  // Computes the tiles first..last for the blocks of channels block..block_end.
  void (*tiles)(const ConvJob& job, int64_t first, int64_t last, int64_t block, int64_t block_end);
  // The same of a job of kPairs on a CPU that has AMX, too. room: AmxRoomSize() floats. Null where
  // `pairs` is false.
  void (*amx_tiles)(const ConvJob& job, int64_t first, int64_t last, int64_t block,
                    int64_t block_end, float* room);
  // Computes the pixels first..last of a job of kFloats or kPairs with at most `lanes` channels.
  // weights: [channel][tap][inner], in place of the job's.
  void (*few_channels)(const ConvJob& job, const float* weights, int64_t first, int64_t last);
  // Computes the rows first..last of the batch * depth * height rows.
  void (*depthwise)(const DepthwiseJob& job, int64_t first, int64_t last);
  // Widens a block of packed weights: to[product][slice][inner][kConvBlock].
  void (*winograd_weights)(const WinogradJob& job, const float* weights, float* to);
  // Widens the inputs of `count` tiles: to[product][tile][slice][inner], with `step` floats from
  // one product to the next. Tiles are counted through the rows of an image, the images of a volume
  // and the batch.
  void (*winograd_inputs)(const WinogradJob& job, int64_t first, int64_t count, float* to,
                          int64_t step);
  // Computes a block of channels of these tiles. weights, inputs, step: as above; sums: room for
  // [product][tile][kConvBlock]. Returns whether all results are finite: of others, some may be NaN
  // that are not NaN otherwise.
  bool (*winograd_results)(const WinogradJob& job, int64_t first, int64_t count, int64_t block,
                           const float* weights, const float* inputs, int64_t step, float* sums);
  // to[column * to_stride + row] = from[row * from_stride + column]
  void (*transpose)(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                    int64_t rows, int64_t columns);
  // To bfloat16, and from it.
  void (*round)(const float* from, int64_t count, uint16_t* to);
  void (*widen)(const uint16_t* from, int64_t count, float* to);
  // From float16.
  void (*widen_half)(const uint16_t* from, int64_t count, float* to);
};

AOTI_SLIM_DECLARE_KERNELS(ConvKernels, kConv)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_H_
