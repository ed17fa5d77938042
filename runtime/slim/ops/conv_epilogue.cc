// A convolution of images with what follows it: normalization, activation, residual.

#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/ops/conv.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Null handles stand for what is missing.
struct EpilogueTensors {
  const Tensor* scale;
  const Tensor* shift;
  const Tensor* residual;
};

TensorPtr EmptyChannelsLast(Ints sizes) {
  const std::int64_t strides[4] = {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1],
                                   sizes[1]};
  return EmptyStrided(ScalarType::kFloat32, sizes, Ints(strides));
}

// Values for each channel, contiguous; null if `tensor` is null.
TensorPtr ChannelValues(const Tensor* tensor, const char* name, std::int64_t channels) {
  if (tensor == nullptr) return nullptr;
  Require(
      tensor->dtype() == ScalarType::kFloat32 && tensor->rank() == 1 && tensor->size(0) == channels,
      "convolution: ", name, " must be float32 of size [", channels, "]");
  return Contiguous(*tensor);
}

// The residual with the strides of `result`.
TensorPtr Residual(const Tensor* residual, const Tensor& result) {
  if (residual == nullptr) return nullptr;
  bool same = residual->dtype() == ScalarType::kFloat32 && residual->rank() == 4;
  for (int d = 0; same && d < 4; ++d) same = residual->size(d) == result.size(d);
  Require(same, "convolution: the residual must be float32 and of the result's size");
  TensorPtr copy = EmptyLike(result);
  Copy(*copy, *residual);
  return copy;
}

bool HasStridesOf(const Tensor& tensor, const Tensor& other) {
  for (int d = 0; d < 4; ++d) {
    if (tensor.rank() != 4 || tensor.size(d) != other.size(d)) return false;
    if (tensor.size(d) > 1 && tensor.stride(d) != other.stride(d)) return false;
  }
  return tensor.dtype() == ScalarType::kFloat32;
}

TensorPtr ConvolutionEpilogue(const Tensor& input, const Tensor& weight,
                              const ConvArguments& arguments, const EpilogueTensors& tensors,
                              ConvEpilogue epilogue) {
  const ConvProblem problem = MakeConvProblem(input, weight, nullptr, arguments);
  Require(input.rank() == 4 && input.dtype() == ScalarType::kFloat32,
          "convolution: an epilogue is for images of float32");
  Require(epilogue.activation >= ConvActivation::kNone &&
              epilogue.activation <= ConvActivation::kLeakyRelu,
          "convolution: no activation ", static_cast<std::int32_t>(epilogue.activation));
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t sizes[4] = {problem.batch, channels, problem.out[1], problem.out[2]};
  TensorPtr result = EmptyChannelsLast(Ints(sizes));
  const TensorPtr scale = ChannelValues(tensors.scale, "scale", channels);
  const TensorPtr shift = ChannelValues(tensors.shift, "shift", channels);
  const bool in_place = tensors.residual != nullptr && HasStridesOf(*tensors.residual, *result);
  const TensorPtr copy = in_place ? nullptr : Residual(tensors.residual, *result);
  if (result->numel() == 0) return result;
  if (scale != nullptr) epilogue.scale = scale->data<float>();
  if (shift != nullptr) epilogue.shift = shift->data<float>();
  if (tensors.residual != nullptr) {
    epilogue.residual = (in_place ? *tensors.residual : *copy).data<float>();
  }
  ConvFloat(problem, ConvArrayOf<float, const float>(input),
            ConvArrayOf<float, const float>(weight), PackedConvWeight(weight, problem), epilogue,
            ConvArrayOf<float, float>(*result));
  return result;
}

}  // namespace
}  // namespace aoti::slim

// Generated code declares it: toolchain/driver/aoti_driver/inductor/convolution_helpers.py.
// geometry: stride, padding before, padding behind, dilation, each for height and width.
extern "C" AOTITorchError aoti_slim_convolution_epilogue(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle scale, AtenTensorHandle shift,
    AtenTensorHandle residual, const std::int64_t* geometry, std::int64_t groups,
    std::int32_t activation, std::int32_t residual_last, float low, float high,
    AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    const auto pair = [&](int i) { return Ints(geometry + 2 * i, 2); };
    const ConvArguments arguments = {.stride = pair(0),
                                     .padding = pair(1),
                                     .padding_after = pair(2),
                                     .dilation = pair(3),
                                     .output_padding = {},
                                     .transposed = false,
                                     .groups = groups};
    ConvEpilogue epilogue;
    epilogue.activation = static_cast<ConvActivation>(activation);
    epilogue.residual_last = residual_last != 0;
    epilogue.low = low;
    epilogue.high = high;
    *ret0 = ConvolutionEpilogue(*input, *weight, arguments, {scale, shift, residual}, epilogue)
                .release();
  });
}
