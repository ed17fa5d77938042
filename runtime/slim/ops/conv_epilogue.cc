// Convolutions of lines, images and volumes with what follows them (normalization, activation,
// residual), and chains of such convolutions.

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
};

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
  const std::int64_t rank = result.rank();
  bool same = residual->dtype() == ScalarType::kFloat32 && residual->rank() == rank;
  for (int d = 0; same && d < rank; ++d) same = residual->size(d) == result.size(d);
  Require(same, "convolution: the residual must be float32 and of the result's size");
  TensorPtr copy = EmptyLike(result);
  Copy(*copy, *residual);
  return copy;
}

bool HasStridesOf(const Tensor& tensor, const Tensor& other) {
  if (tensor.rank() != other.rank()) return false;
  for (int d = 0; d < other.rank(); ++d) {
    if (tensor.size(d) != other.size(d)) return false;
    if (tensor.size(d) > 1 && tensor.stride(d) != other.stride(d)) return false;
  }
  return tensor.dtype() == ScalarType::kFloat32;
}

// A stage, and what its pointers point to.
struct Stage {
  ConvStage stage;
  TensorPtr scale, shift;
};

Stage MakeStage(const Tensor& input, const Tensor& weight, const ConvArguments& arguments,
                const EpilogueTensors& tensors, ConvEpilogue epilogue) {
  const ConvProblem problem = MakeConvProblem(input, weight, nullptr, arguments);
  Require(input.dtype() == ScalarType::kFloat32,
          "convolution: an epilogue is for a convolution of float32");
  Require(epilogue.activation >= ConvActivation::kNone &&
              epilogue.activation <= ConvActivation::kLeakyRelu,
          "convolution: no activation ", static_cast<std::int32_t>(epilogue.activation));
  const std::int64_t channels = problem.groups * problem.out_channels;
  Stage made = {};
  made.scale = ChannelValues(tensors.scale, "scale", channels);
  made.shift = ChannelValues(tensors.shift, "shift", channels);
  if (made.scale != nullptr) epilogue.scale = made.scale->data<float>();
  if (made.shift != nullptr) epilogue.shift = made.shift->data<float>();
  made.stage = {problem, ConvArrayOf<float, const float>(weight), PackedConvWeight(weight, problem),
                epilogue};
  return made;
}

// Runs the stages; the last one adds the residual.
TensorPtr Run(Stage* stages, int count, const Tensor& input, const Tensor* residual) {
  TensorPtr result = EmptyConvResult(stages[count - 1].stage.problem, input, true);
  const bool in_place = residual != nullptr && HasStridesOf(*residual, *result);
  const TensorPtr copy = in_place ? nullptr : Residual(residual, *result);
  if (result->numel() == 0) return result;
  ConvStage all[kMostStages];
  for (int i = 0; i < count; ++i) all[i] = stages[i].stage;
  if (residual != nullptr) {
    all[count - 1].epilogue.residual = (in_place ? *residual : *copy).data<float>();
  }
  const auto in = ConvArrayOf<float, const float>(input);
  const auto out = ConvArrayOf<float, float>(*result);
  if (count == 1) {
    ConvFloat(all[0].problem, in, all[0].weight, all[0].packed, all[0].epilogue, out);
  } else {
    ConvChain(all, count, in, out);
  }
  return result;
}

ConvEpilogue MakeEpilogue(std::int32_t activation, bool residual_last, float low, float high) {
  ConvEpilogue epilogue;
  epilogue.activation = static_cast<ConvActivation>(activation);
  epilogue.residual_last = residual_last;
  epilogue.low = low;
  epilogue.high = high;
  return epilogue;
}

// geometry: stride, padding before, padding behind, dilation, each for every spatial dim.
ConvArguments MakeArguments(const std::int64_t* geometry, std::int64_t dims, std::int64_t groups) {
  const auto numbers = [&](int i) {
    return Ints(geometry + dims * i, static_cast<std::size_t>(dims));
  };
  return {.stride = numbers(0),
          .padding = numbers(1),
          .padding_after = numbers(2),
          .dilation = numbers(3),
          .output_padding = {},
          .transposed = false,
          .groups = groups};
}

// A tensor that only has the sizes of an image: what a stage reads of the one before.
TensorPtr Shaped(const ConvProblem& problem) {
  const std::int64_t sizes[4] = {problem.batch, problem.groups * problem.out_channels,
                                 problem.out[1], problem.out[2]};
  const std::int64_t strides[4] = {0, 0, 0, 0};
  return EmptyStrided(ScalarType::kFloat32, Ints(sizes), Ints(strides));
}

}  // namespace
}  // namespace aoti::slim

// Generated code declares it: toolchain/driver/aoti_driver/inductor/convolution_helpers.py.
// geometry: stride, padding before, padding behind, dilation, each for every one of the `dims`
// spatial dims.
extern "C" AOTITorchError aoti_slim_convolution_epilogue(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle scale, AtenTensorHandle shift,
    AtenTensorHandle residual, const std::int64_t* geometry, std::int64_t dims, std::int64_t groups,
    std::int32_t activation, std::int32_t residual_last, float low, float high,
    AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    Require(dims >= 1 && dims <= 3 && input->rank() == dims + 2, "convolution: input has ",
            input->rank(), " dims, must have ", dims + 2, " for ", dims, " spatial dims");
    Stage stage = MakeStage(*input, *weight, MakeArguments(geometry, dims, groups), {scale, shift},
                            MakeEpilogue(activation, residual_last != 0, low, high));
    *ret0 = Run(&stage, 1, *input, residual).release();
  });
}

// weights, scales, shifts, activations, lows, highs: of each of the `count` stages. geometry and
// groups are those of the second one; the others are of pixels (1x1).
extern "C" AOTITorchError aoti_slim_convolution_chain(
    AtenTensorHandle input, std::int64_t count, const AtenTensorHandle* weights,
    const AtenTensorHandle* scales, const AtenTensorHandle* shifts, AtenTensorHandle residual,
    const std::int64_t* geometry, std::int64_t groups, const std::int32_t* activations,
    std::int32_t residual_last, const float* lows, const float* highs, AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    Require(count == 2 || count == 3, "convolution: a chain of ", count,
            " stages, must have 2 or 3");
    Require(input->rank() == 4, "convolution: a chain is for images, of 4 dims, not ",
            input->rank());
    constexpr std::int64_t kOfPixels[8] = {1, 1, 0, 0, 0, 0, 1, 1};
    Stage stages[kMostStages];
    TensorPtr before;
    for (int i = 0; i < count; ++i) {
      const bool filters = i == 1;
      stages[i] = MakeStage(
          i == 0 ? *input : *before, *weights[i],
          MakeArguments(filters ? geometry : kOfPixels, 2, filters ? groups : 1),
          {scales[i], shifts[i]},
          MakeEpilogue(activations[i], residual_last != 0 && i + 1 == count, lows[i], highs[i]));
      before = Shaped(stages[i].stage.problem);
    }
    *ret0 = Run(stages, static_cast<int>(count), *input, residual).release();
  });
}
