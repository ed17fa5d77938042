// What the operators for convolutions share: their arguments, checked, and arrays of tensors.

#ifndef AOTI_RUNTIME_SLIM_OPS_CONV_H_
#define AOTI_RUNTIME_SLIM_OPS_CONV_H_

#include <algorithm>
#include <cstdint>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// The sizes and strides of a tensor, extended to three spatial dims.
struct SpatialDims {
  explicit SpatialDims(const Tensor& tensor) {
    const std::int64_t missing = 5 - tensor.rank();
    for (std::int64_t d = 0; d < 5; ++d) {
      const std::int64_t own = d < 2 ? d : d - missing;
      sizes[d] = d >= 2 && own < 2 ? 1 : tensor.size(own);
      strides[d] = d >= 2 && own < 2 ? 0 : tensor.stride(own);
    }
  }
  std::int64_t sizes[5];
  std::int64_t strides[5];
};

struct ConvArguments {
  Ints stride, padding;
  Ints padding_after;  // empty: as `padding`
  Ints dilation, output_padding;
  bool transposed;
  std::int64_t groups;
};

// OpError if the arguments don't fit each other.
ConvProblem MakeConvProblem(const Tensor& input, const Tensor& weight, const Tensor* bias,
                            const ConvArguments& arguments);

// A tensor of 3 to 5 dims: batch, channels, and others. channels_last: with contiguous channels.
TensorPtr EmptyImage(Ints sizes, ScalarType dtype, bool channels_last);

// The same for the result. rank: the number of dims.
TensorPtr EmptyConvResult(const ConvProblem& problem, std::int64_t rank, ScalarType dtype,
                          bool channels_last);

// The weight as it was packed at build time, or null if it was not packed for this kind of
// convolution.
const float* PackedConvWeight(const Tensor& weight, const ConvProblem& problem);

// Of an input and a weight of bfloat16 or float16. The sums are float32, and so is the epilogue;
// only results that are bfloat16 are rounded.
void ConvHalf(const ConvProblem& problem, const Tensor& input, const Tensor& weight,
              const ConvEpilogue& epilogue, const ConvResults& out);

// Lets a stage whose weight is bfloat16 be one of pairs for ConvChain(). Returns false, and leaves
// it changed, if that is not possible.
bool TakePairs(const Tensor& weight, ConvStage& stage);

template <typename T, typename Element>
ConvArray<Element> ConvArrayOf(const Tensor& tensor) {
  ConvArray<Element> array = {tensor.data<T>(), {}};
  const SpatialDims spatial(tensor);
  std::copy_n(spatial.strides, 5, array.strides);
  return array;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_CONV_H_
