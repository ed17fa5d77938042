// The layouts in which ConvFloat() reads weights. They are the same for every CPU level, and for
// weights that are packed at build time (toolchain/driver/aoti_driver/packing/convolution.py):
// float32 but for those of bfloat16, with zeros for the channels that a group or a block lacks.
//
//   "conv_f32", "conv_transposed_f32":
//     [group][block of kConvBlock output channels][tap][input channel][kConvBlock]
//   "conv_bf16", "conv_transposed_bf16", for weights of bfloat16 with an even number of input
//   channels in a group, or one group of any number but 1:
//     as "conv_f32", with a pair of bfloat16 of two input channels in place of each float; the
//     last one of an odd number is followed by zero
//   "conv_depthwise_f32", for groups that have 1, 2, 4 or 8 channels, as many inputs as outputs:
//     [tap][input channel of the group][output channel of all groups, rounded up to kConvBlock]
//
// Taps are in the order of the weight's spatial dims, row-major.

#ifndef AOTI_RUNTIME_SLIM_CONV_PACK_H_
#define AOTI_RUNTIME_SLIM_CONV_PACK_H_

#include <cstdint>
#include <optional>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

const char* ConvPackedKind(const ConvProblem& problem);
std::int64_t ConvPackedSize(const ConvProblem& problem);  // floats, or pairs
void ConvPack(const ConvProblem& problem, ConvArray<const float> weight, float* packed);

// For a problem of kPairs, from a weight of bfloat16.
void ConvPackPairs(const ConvProblem& problem, ConvArray<const std::uint16_t> weight,
                   float* packed);
// Rows of kConvBlock pairs as twice as many rows of floats.
void ConvWidenPairs(const float* pairs, std::int64_t rows, float* wide);
// The weight of a problem of kPairs as that of one of kFloats with an odd number of inputs.
void ConvWidenOdd(const ConvProblem& problem, const float* pairs, float* packed);

// A packed weight: the caller's, or one that was packed for a call.
class PackedFilter {
 public:
  // packed: as ConvFloat() takes it.
  PackedFilter(const ConvProblem& problem, ConvArray<const float> weight, const float* packed);
  const float* data() const { return data_; }

 private:
  std::optional<Scratch<float>> own_;
  const float* data_;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_PACK_H_
