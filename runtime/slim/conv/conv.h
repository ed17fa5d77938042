// One description for all kinds of convolutions, and the functions that compute them.

#ifndef AOTI_RUNTIME_SLIM_CONV_CONV_H_
#define AOTI_RUNTIME_SLIM_CONV_CONV_H_

#include <algorithm>
#include <cstdint>

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Convolutions in 1 or 2 dims have sizes of 1 for the missing dims. Spatial dims: depth, height,
// width.
struct ConvProblem {
  std::int64_t batch;
  std::int64_t groups;
  std::int64_t in_channels, out_channels;  // in one group
  std::int64_t in[3], out[3], kernel[3];
  std::int64_t stride[3], dilation[3];
  // Before the first pixel. Behind the last one, there are as many zeros as `out` needs.
  std::int64_t padding[3];
  bool transposed;
  // Of the input and of the weight. With kPairs, which kernels with `pairs` take, `in_channels`
  // counts pairs, and `odd` says whether the last one has only its first number. There is one group
  // then.
  ConvNumbers numbers;
  bool odd;

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Whether groups have few channels, as many inputs as outputs, and a power of two of them.
  bool depthwise() const {
    return groups > 1 && in_channels == out_channels && !transposed &&
           numbers == ConvNumbers::kFloats &&
           (in_channels == 1 || in_channels == 2 || in_channels == 4 || in_channels == 8);
  }
};

// Memory with elements of type T. Strides in elements: batch (for a weight: the first dim), channel
// (the second), depth, height, width.
template <typename T>
struct ConvArray {
  T* data;
  std::int64_t strides[5];
};

// Where results go: as floats, or rounded to bfloat16. Either the channels or the pixels must be
// contiguous; of bfloat16, and with a residual, the channels. Other values may lie between pixels
// whose channels are contiguous.
struct ConvResults {
  ConvResults(ConvArray<float> array) : floats(array.data) {  // NOLINT: as any array
    std::copy_n(array.strides, 5, strides);
  }
  ConvResults(ConvArray<std::uint16_t> array) : narrow(array.data) {  // NOLINT
    std::copy_n(array.strides, 5, strides);
  }
  // Of these, one is null.
  float* floats = nullptr;
  std::uint16_t* narrow = nullptr;
  std::int64_t strides[5];
};

// `packed`: the weight in the layout of pack.h, or null, for kFloats: then the call packs `weight`.
// in: of pairs, with contiguous channels, and not `odd`.
void ConvFloat(const ConvProblem& problem, ConvArray<const float> in, ConvArray<const float> weight,
               const float* packed, const ConvEpilogue& epilogue, const ConvResults& out);

// The same of pairs, from an image of bfloat16.
void ConvPairs(const ConvProblem& problem, ConvArray<const std::uint16_t> in, const float* packed,
               const ConvEpilogue& epilogue, const ConvResults& out);

// The same as ConvFloat() from an image of bfloat16 or, with `half`, of float16.
void ConvWidened(const ConvProblem& problem, ConvArray<const std::uint16_t> in, bool half,
                 ConvArray<const float> weight, const float* packed, const ConvEpilogue& epilogue,
                 const ConvResults& out);

// Lets `pairs` be an image of pairs. Returns false if its pairs of channels don't lie in memory as
// numbers of 32 bits do.
bool AsPairs(const ConvProblem& problem, const ConvArray<const std::uint16_t>& in,
             ConvArray<const float>& pairs);

// A convolution of a chain. packed: as above; of pairs, it is not null, and there is no `odd` one.
// If the stage behind it is of pairs, its result is rounded to bfloat16.
struct ConvStage {
  ConvProblem problem;
  ConvArray<const float> weight;
  const float* packed;
  ConvEpilogue epilogue;
};
constexpr int kMostStages = 3;

// 2 or 3 convolutions of images, each of the result of the one before: pixels (1x1), then
// depthwise, then perhaps pixels; the last one may have a residual. They are computed row by row,
// so that what is between them is not written to memory as a whole. in: as ConvFloat() takes it.
// Returns false, and computes nothing, where the stages one after the other are as fast, or these
// are other stages.
bool ConvChain(const ConvStage* stages, int count, ConvArray<const float> in,
               const ConvResults& out);

// For any real type, with plain loops. Integers wrap around.
template <typename T>
void ConvPlain(const ConvProblem& problem, ConvArray<const T> in, ConvArray<const T> weight,
               const T* bias, ConvArray<T> out);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_CONV_H_
