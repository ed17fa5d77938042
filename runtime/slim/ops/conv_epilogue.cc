// Convolutions of lines, images and volumes with what follows them (normalization, activation,
// residual), and chains of such convolutions.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/float_settings.h"
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

std::int64_t ChannelsOf(const ConvProblem& problem) {
  return problem.groups * problem.out_channels;
}

// Whether the tensor has this dtype and the result's size, apart from the channels. rank: the
// input's.
bool IsLikeResult(const Tensor& tensor, ScalarType dtype, const ConvProblem& problem,
                  std::int64_t rank) {
  if (tensor.dtype() != dtype || tensor.rank() != rank) return false;
  const SpatialDims own(tensor);
  return own.sizes[0] == problem.batch && std::equal(problem.out, problem.out + 3, own.sizes + 2);
}

bool HasContiguousChannels(const Tensor& tensor) {
  return tensor.stride(1) == 1 || tensor.size(1) == 1;
}

// What is added to each result, or to its first channels. Copied if its channels aren't contiguous.
class Residual {
 public:
  // `residual` may be null. of_floats: whether it is added by one convolution of float32, which
  // takes one with fewer channels.
  Residual(const Tensor* residual, const ConvProblem& problem, const Tensor& result, bool of_floats)
      : tensor_(residual) {
    if (residual == nullptr) return;
    const ScalarType dtype = residual->dtype();
    Require((dtype == ScalarType::kFloat32 || dtype == ScalarType::kBFloat16) &&
                IsLikeResult(*residual, dtype, problem, result.rank()) &&
                residual->size(1) <= ChannelsOf(problem),
            "convolution: the residual must be float32 or bfloat16 and of the result's size, or "
            "have fewer channels");
    const bool lacks_channels = residual->size(1) < ChannelsOf(problem);
    const bool takes_fewer = of_floats && dtype == ScalarType::kFloat32;
    if (HasContiguousChannels(*residual) && (!lacks_channels || takes_fewer)) return;
    copy_ = EmptyLike(result, dtype);
    if (lacks_channels) {
      const auto elements = static_cast<std::size_t>(copy_->numel());
      std::memset(copy_->data(), 0, elements * SizeOf(dtype));
    }
    Copy(*View(*copy_, residual->sizes(), copy_->strides(), copy_->offset()), *residual);
    tensor_ = copy_.get();
  }

  void AddTo(ConvEpilogue& epilogue) const {
    if (tensor_ == nullptr) return;
    if (tensor_->dtype() == ScalarType::kFloat32) {
      epilogue.residual = tensor_->data<float>();
    } else {
      epilogue.narrow_residual = tensor_->data<std::uint16_t>();
    }
    const SpatialDims spatial(*tensor_);
    epilogue.residual_channels = tensor_->size(1);
    epilogue.residual_strides[0] = spatial.strides[0];
    std::copy_n(spatial.strides + 2, 3, epilogue.residual_strides + 1);
  }

 private:
  const Tensor* tensor_;
  TensorPtr copy_;
};

// A stage, and what its pointers point to.
struct Stage {
  ConvStage stage;  // without a weight if that is of bfloat16
  const Tensor* weight;
  TensorPtr scale, shift;
};

Stage MakeStage(const Tensor& input, const Tensor& weight, const ConvArguments& arguments,
                const EpilogueTensors& tensors, ConvEpilogue epilogue) {
  const ConvProblem problem = MakeConvProblem(input, weight, nullptr, arguments);
  const bool is_float = input.dtype() == ScalarType::kFloat32;
  Require(is_float || input.dtype() == ScalarType::kBFloat16,
          "convolution: an epilogue is for a convolution of float32 or bfloat16");
  Require(
      epilogue.activation >= ConvActivation::kNone && epilogue.activation <= ConvActivation::kGelu,
      "convolution: no activation ", static_cast<std::int32_t>(epilogue.activation));
  const std::int64_t channels = ChannelsOf(problem);
  Stage made = {};
  made.scale = ChannelValues(tensors.scale, "scale", channels);
  made.shift = ChannelValues(tensors.shift, "shift", channels);
  if (made.scale != nullptr) epilogue.scale = made.scale->data<float>();
  if (made.shift != nullptr) epilogue.shift = made.shift->data<float>();
  made.weight = &weight;
  made.stage = {problem, {}, nullptr, epilogue};
  if (is_float) {
    made.stage.weight = ConvArrayOf<float, const float>(weight);
    made.stage.packed = PackedConvWeight(weight, problem);
  }
  return made;
}

ConvResults ResultsIn(const Tensor& result) {
  if (result.dtype() == ScalarType::kFloat32) return ConvArrayOf<float, float>(result);
  return ConvArrayOf<std::uint16_t, std::uint16_t>(result);
}

// The dtype of what stage `i` leaves for the next one.
ScalarType DtypeBetween(const Stage* stages, int i) { return stages[i + 1].weight->dtype(); }

// Runs a chain row by row. Returns false, and does nothing, if that is not better.
bool RunByRows(const Tensor& result, const Stage* stages, int count, const Tensor& input,
               const Residual& residual) {
  ConvStage all[kMostStages];
  for (int i = 0; i < count; ++i) {
    all[i] = stages[i].stage;
    const bool is_float = stages[i].weight->dtype() == ScalarType::kFloat32;
    if (!is_float && !TakePairs(*stages[i].weight, all[i])) return false;
  }
  residual.AddTo(all[count - 1].epilogue);
  ConvArray<const float> in = {};
  if (input.dtype() == ScalarType::kFloat32) {
    in = ConvArrayOf<float, const float>(input);
  } else if (!AsPairs(all[0].problem, ConvArrayOf<std::uint16_t, const std::uint16_t>(input), in)) {
    return false;
  }
  return ConvChain(all, count, in, ResultsIn(result));
}

// Runs the stages; the last one adds the residual, which may be null.
void RunInto(const Tensor& result, const Stage* stages, int count, const Tensor& input,
             const Tensor* residual) {
  const bool of_floats = count == 1 && input.dtype() == ScalarType::kFloat32;
  const Residual added(residual, stages[count - 1].stage.problem, result, of_floats);
  if (result.numel() == 0) return;
  std::optional<internal::WithoutSubnormals> scope;
  if (input.dtype() == ScalarType::kFloat32 && result.dtype() == input.dtype()) scope.emplace();
  if (count > 1 && RunByRows(result, stages, count, input, added)) return;
  TensorPtr between;
  const Tensor* in = &input;
  for (int i = 0; i < count; ++i) {
    ConvStage stage = stages[i].stage;
    TensorPtr own;
    if (i + 1 < count) {
      own = EmptyConvResult(stage.problem, input.rank(), DtypeBetween(stages, i), true);
    } else {
      added.AddTo(stage.epilogue);
    }
    const ConvResults out = ResultsIn(own == nullptr ? result : *own);
    if (in->dtype() == ScalarType::kFloat32) {
      ConvFloat(stage.problem, ConvArrayOf<float, const float>(*in), stage.weight, stage.packed,
                stage.epilogue, out);
    } else {
      ConvHalf(stage.problem, *in, *stages[i].weight, stage.epilogue, out);
    }
    between = std::move(own);
    in = between.get();
  }
}

// The same into a new tensor, or into `into` if that is given: a tensor of the result's sizes.
TensorPtr Run(const Stage* stages, int count, const Tensor& input, const Tensor* residual,
              ScalarType dtype, const Tensor* into) {
  const ConvProblem& last = stages[count - 1].stage.problem;
  TensorPtr result;
  if (into == nullptr) {
    result = EmptyConvResult(last, input.rank(), dtype, true);
    into = result.get();
  } else {
    Require(IsLikeResult(*into, dtype, last, input.rank()) && into->size(1) == ChannelsOf(last) &&
                HasContiguousChannels(*into),
            "convolution: the tensor for the result must be ", NameOf(dtype),
            ", of the result's size, and with contiguous channels");
  }
  RunInto(*into, stages, count, input, residual);
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
ConvArguments MakeArguments(const std::int64_t* geometry, std::int64_t dims, std::int64_t groups,
                            bool transposed) {
  const auto numbers = [&](int i) {
    return Ints(geometry + dims * i, static_cast<std::size_t>(dims));
  };
  return {.stride = numbers(0),
          .padding = numbers(1),
          .padding_after = numbers(2),
          .dilation = numbers(3),
          .output_padding = {},
          .transposed = transposed,
          .groups = groups};
}

// A tensor that only has the sizes of an image: what a stage reads of the one before.
TensorPtr Shaped(const ConvProblem& problem, ScalarType dtype) {
  const std::int64_t sizes[4] = {problem.batch, ChannelsOf(problem), problem.out[1],
                                 problem.out[2]};
  const std::int64_t strides[4] = {0, 0, 0, 0};
  return EmptyStrided(dtype, Ints(sizes), Ints(strides));
}

}  // namespace
}  // namespace aoti::slim

// Generated code declares these: toolchain/driver/aoti_driver/inductor/convolution_helpers.py.
// geometry: stride, padding before, padding behind, dilation, each for every one of the `dims`
// spatial dims. into: where to write the result, with contiguous channels, between whose pixels
// other values may lie; if it is null, *ret0 becomes a new tensor. narrow: the result is rounded to
// bfloat16.
extern "C" AOTITorchError aoti_slim_convolution_epilogue(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle scale, AtenTensorHandle shift,
    AtenTensorHandle residual, const std::int64_t* geometry, std::int64_t dims, std::int64_t groups,
    std::int32_t transposed, std::int32_t activation, std::int32_t residual_last, float low,
    float high, std::int32_t narrow, AtenTensorHandle into, AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    Require(dims >= 1 && dims <= 3 && input->rank() == dims + 2, "convolution: input has ",
            input->rank(), " dims, must have ", dims + 2, " for ", dims, " spatial dims");
    const Stage stage =
        MakeStage(*input, *weight, MakeArguments(geometry, dims, groups, transposed != 0),
                  {scale, shift}, MakeEpilogue(activation, residual_last != 0, low, high));
    const ScalarType dtype = narrow != 0 ? ScalarType::kBFloat16 : ScalarType::kFloat32;
    TensorPtr result = Run(&stage, 1, *input, residual, dtype, into);
    if (into == nullptr) *ret0 = result.release();
  });
}

// weights, scales, shifts, activations, lows, highs: of each of the `count` stages. geometry and
// groups are those of the second one; the others are of pixels (1x1). narrow: the last result is
// rounded to bfloat16; one before a stage with a weight of bfloat16 is, too.
extern "C" AOTITorchError aoti_slim_convolution_chain(
    AtenTensorHandle input, std::int64_t count, const AtenTensorHandle* weights,
    const AtenTensorHandle* scales, const AtenTensorHandle* shifts, AtenTensorHandle residual,
    const std::int64_t* geometry, std::int64_t groups, const std::int32_t* activations,
    std::int32_t residual_last, const float* lows, const float* highs, std::int32_t narrow,
    AtenTensorHandle into, AtenTensorHandle* ret0) {
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
          MakeArguments(filters ? geometry : kOfPixels, 2, filters ? groups : 1, false),
          {scales[i], shifts[i]},
          MakeEpilogue(activations[i], residual_last != 0 && i + 1 == count, lows[i], highs[i]));
      if (i + 1 < count) before = Shaped(stages[i].stage.problem, weights[i + 1]->dtype());
    }
    const ScalarType dtype = narrow != 0 ? ScalarType::kBFloat16 : ScalarType::kFloat32;
    TensorPtr result = Run(stages, static_cast<int>(count), *input, residual, dtype, into);
    if (into == nullptr) *ret0 = result.release();
  });
}
