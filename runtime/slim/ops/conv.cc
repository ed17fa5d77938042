// aten::convolution.

#include "runtime/slim/ops/conv.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/core/float_settings.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory_format.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

std::string Sizes(const Tensor& tensor) {
  std::string text = "[";
  for (std::int64_t d = 0; d < tensor.rank(); ++d) {
    text += StrCat(d == 0 ? "" : ", ", tensor.size(d));
  }
  return text + "]";
}

// The list has one number for all spatial dims, or one for each.
std::int64_t At(Ints list, const char* name, std::int64_t rank, std::int64_t dim) {
  const auto size = static_cast<std::int64_t>(list.size());
  Require(size == 1 || size == rank, "convolution: ", name, " has ", size, " numbers, must have ",
          rank);
  return list[static_cast<std::size_t>(size == 1 ? 0 : dim)];
}

// after: the padding behind the last pixel.
std::int64_t OutputSize(const ConvProblem& problem, int d, std::int64_t after,
                        std::int64_t output_padding) {
  std::int64_t reach = 0;
  std::int64_t border = 0;
  std::int64_t size = 0;
  const bool fits = !__builtin_mul_overflow(problem.kernel[d] - 1, problem.dilation[d], &reach) &&
                    !__builtin_add_overflow(problem.padding[d], after, &border);
  Require(fits, "convolution: dilation or padding is too large");
  if (problem.transposed) {
    const bool sized = !__builtin_mul_overflow(problem.in[d] - 1, problem.stride[d], &size) &&
                       !__builtin_sub_overflow(size, border, &size) &&
                       !__builtin_add_overflow(size, reach, &size) &&
                       !__builtin_add_overflow(size, output_padding + 1, &size);
    Require(sized && size > 0, "convolution: the output's size would not be positive");
    return size;
  }
  Require(!__builtin_add_overflow(problem.in[d], border, &size),
          "convolution: padding is too large");
  Require(size > reach, "convolution: the filter covers ", reach + 1, " pixels, more than the ",
          size, " of the padded input");
  return (size - reach - 1) / problem.stride[d] + 1;
}

}  // namespace

ConvProblem MakeConvProblem(const Tensor& input, const Tensor& weight, const Tensor* bias,
                            const ConvArguments& arguments) {
  const std::int64_t rank = weight.rank();
  Require(rank >= 3 && rank <= 5, "convolution: weight has ", rank, " dims, must have 3, 4 or 5");
  Require(input.rank() == rank, "convolution: input has ", input.rank(),
          " dims, must have as many as weight: ", rank);
  Require(input.dtype() == weight.dtype(), "convolution: input is ", NameOf(input.dtype()),
          ", weight is ", NameOf(weight.dtype()), "; must be the same");
  const std::int64_t groups = arguments.groups;
  Require(groups > 0, "convolution: groups is ", groups, ", must be positive");
  for (std::int64_t d = 0; d < rank; ++d) {
    Require(weight.size(d) > 0 || (d == 1 && input.size(1) == 0), "convolution: weight of size ",
            Sizes(weight), " has no elements");
  }
  Require(weight.size(0) % groups == 0, "convolution: weight of size ", Sizes(weight),
          " must have a multiple of groups = ", groups, " at dim 0");
  const std::int64_t channels = arguments.transposed ? weight.size(0) : weight.size(1) * groups;
  Require(input.size(1) == channels || input.size(1) == 0, "convolution: input of size ",
          Sizes(input), " must have ", channels, " channels, for weight of size ", Sizes(weight),
          " and groups = ", groups);

  ConvProblem problem = {};
  problem.batch = input.size(0);
  problem.groups = groups;
  problem.in_channels = input.size(1) / groups;
  problem.out_channels = arguments.transposed ? weight.size(1) : weight.size(0) / groups;
  problem.transposed = arguments.transposed;
  if (bias != nullptr) {
    Require(bias->dtype() == input.dtype(), "convolution: bias is ", NameOf(bias->dtype()),
            ", must be the dtype of input, ", NameOf(input.dtype()));
    Require(bias->rank() == 1 && bias->size(0) == problem.out_channels * groups,
            "convolution: bias of size ", Sizes(*bias), " must be of size [",
            problem.out_channels * groups, "]");
  }
  const SpatialDims in(input);
  const SpatialDims filter(weight);
  for (int d = 0; d < 3; ++d) {
    problem.in[d] = in.sizes[d + 2];
    problem.kernel[d] = filter.sizes[d + 2];
    problem.stride[d] = problem.dilation[d] = problem.out[d] = 1;
    const std::int64_t own = d - (5 - rank);
    if (own < 0) continue;
    const std::int64_t spatial = rank - 2;
    problem.stride[d] = At(arguments.stride, "stride", spatial, own);
    problem.padding[d] = At(arguments.padding, "padding", spatial, own);
    problem.dilation[d] = At(arguments.dilation, "dilation", spatial, own);
    Require(problem.stride[d] > 0, "convolution: stride is ", problem.stride[d],
            ", must be positive");
    const std::int64_t after = arguments.padding_after.empty()
                                   ? problem.padding[d]
                                   : At(arguments.padding_after, "padding", spatial, own);
    // Of a transposed convolution, less padding behind is what `output_padding` is otherwise.
    const bool may_be_negative = arguments.transposed && arguments.output_padding.empty();
    Require(problem.padding[d] >= 0 && (after >= 0 || may_be_negative), "convolution: padding is ",
            std::min(problem.padding[d], after), ", must not be negative");
    Require(problem.dilation[d] > 0, "convolution: dilation is ", problem.dilation[d],
            ", must be positive");
    // This limit keeps the positions that are computed below from overflowing.
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    Require(
        std::max({problem.stride[d], problem.padding[d], after, problem.dilation[d]}) <= kMost &&
            after >= -kMost,
        "convolution: stride, dilation or padding is too large, more than ", kMost);
    const std::int64_t extra = arguments.output_padding.empty() || !problem.transposed
                                   ? 0
                                   : At(arguments.output_padding, "output_padding", spatial, own);
    Require(extra >= 0 && (extra == 0 || extra < std::max(problem.stride[d], problem.dilation[d])),
            "convolution: output_padding is ", extra,
            ", must be less than stride or dilation, and not negative");
    problem.out[d] = OutputSize(problem, d, after, extra);
  }
  return problem;
}

TensorPtr EmptyConvResult(const ConvProblem& problem, std::int64_t rank, ScalarType dtype,
                          bool channels_last) {
  std::int64_t sizes[5] = {problem.batch, problem.groups * problem.out_channels};
  for (std::int64_t d = 2; d < rank; ++d) sizes[d] = problem.out[d + 3 - rank];
  return EmptyImage(Ints(sizes, static_cast<std::size_t>(rank)), dtype, channels_last);
}

TensorPtr EmptyImage(Ints sizes, ScalarType dtype, bool channels_last) {
  std::int64_t strides[5];
  std::int64_t next = 1;
  if (channels_last) {
    strides[1] = next;
    next *= sizes[1];
  }
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (d == 1 && channels_last) continue;
    strides[d] = next;
    next *= std::max<std::int64_t>(sizes[d], 1);
  }
  return EmptyStrided(dtype, sizes, Ints(strides, sizes.size()));
}

const float* PackedConvWeight(const Tensor& weight, const ConvProblem& problem) {
  const PackedWeight* packed = weight.storage().packed;
  if (packed == nullptr || std::strcmp(packed->kind, ConvPackedKind(problem)) != 0) return nullptr;
  const auto bytes = static_cast<std::size_t>(ConvPackedSize(problem)) * sizeof(float);
  Require(packed->bytes == bytes, "convolution: the packed weight has ", packed->bytes,
          " bytes, must have ", bytes);
  return static_cast<const float*>(packed->data);
}

namespace {

// Whether PyTorch leaves a 3d convolution to oneDNN, which supports channels last in 3d, unlike
// PyTorch's own kernels. (This is the choice on a machine with several threads. For bfloat16 and
// float16 it differs with the CPU, so the driver's convolutions.py predicts a contiguous result.)
bool KnowsChannelsLast3d(const Tensor& input, const ConvProblem& problem, Ints output_padding) {
  for (int d = 0; d < 3 && problem.transposed; ++d) {
    if (At(output_padding, "output_padding", 3, d) >= problem.stride[d]) return false;
  }
  if (input.dtype() != ScalarType::kFloat32) return false;
  constexpr std::int64_t kSmall = 20480;
  return problem.groups > 1 || (problem.kernel[1] > 3 && problem.kernel[2] > 3) ||
         problem.batch > 1 || input.size(1) * problem.in[0] * problem.in[1] > kSmall;
}

// Whether PyTorch predicts a channels-last result when it generates code for the call.
bool ResultIsChannelsLast(const Tensor& input, const Tensor& weight, const ConvProblem& problem,
                          Ints output_padding) {
  if (input.size(0) == 0 || input.size(1) == 0) return false;
  if (input.rank() == 3) {
    // For images of height 1, PyTorch regards the input as contiguous.
    const std::int64_t height = weight.size(2) * weight.stride(2);
    const std::int64_t sizes[] = {weight.size(0), weight.size(1), 1, weight.size(2)};
    const std::int64_t strides[] = {weight.stride(0), weight.stride(1), height, weight.stride(2)};
    return LooksChannelsLast(Ints(sizes), Ints(strides));
  }
  if (input.rank() == 5 && !KnowsChannelsLast3d(input, problem, output_padding)) return false;
  return LooksChannelsLast(input) || LooksChannelsLast(weight);
}

void RunFloat(const ConvProblem& problem, const Tensor& input, const Tensor& weight,
              const float* packed, const Tensor* bias, const Tensor& result) {
  const internal::WithoutSubnormals scope;
  const TensorPtr dense_bias = bias == nullptr ? nullptr : Contiguous(*bias);
  ConvEpilogue epilogue;
  if (bias != nullptr) epilogue.shift = dense_bias->data<float>();
  ConvFloat(problem, ConvArrayOf<float, const float>(input),
            ConvArrayOf<float, const float>(weight), packed, epilogue,
            ConvArrayOf<float, float>(result));
}

void RunHalf(const ConvProblem& problem, const Tensor& input, const Tensor& weight,
             const Tensor* bias, const Tensor& result) {
  const TensorPtr wide_bias = bias == nullptr ? nullptr : Converted(*bias, ScalarType::kFloat32);
  ConvEpilogue epilogue;
  if (bias != nullptr) epilogue.shift = wide_bias->data<float>();
  if (result.dtype() == ScalarType::kBFloat16 && result.stride(1) == 1) {
    const auto out = ConvArrayOf<std::uint16_t, std::uint16_t>(result);
    return ConvHalf(problem, input, weight, epilogue, out);
  }
  const TensorPtr wide = EmptyLike(result, ScalarType::kFloat32);
  ConvHalf(problem, input, weight, epilogue, ConvArrayOf<float, float>(*wide));
  Copy(result, *wide);
}

TensorPtr Convolution(const Tensor& input, const Tensor& weight, const Tensor* bias,
                      const ConvArguments& arguments) {
  const ConvProblem problem = MakeConvProblem(input, weight, bias, arguments);
  ConvProblem sized = problem;
  if (input.size(1) == 0) sized.out_channels = 0;  // as in PyTorch
  TensorPtr result =
      EmptyConvResult(sized, input.rank(), input.dtype(),
                      ResultIsChannelsLast(input, weight, problem, arguments.output_padding));
  if (result->numel() == 0) return result;
  switch (input.dtype()) {
    case ScalarType::kFloat32:
      RunFloat(problem, input, weight, PackedConvWeight(weight, problem), bias, *result);
      return result;
    case ScalarType::kFloat16:
    case ScalarType::kBFloat16:
      RunHalf(problem, input, weight, bias, *result);
      return result;
    default:
      break;
  }
  Require(input.dtype() != ScalarType::kBool, "convolution: dtype bool is not supported");
  DispatchReal(input.dtype(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, double> ||
                  (std::is_integral_v<T> && !std::is_same_v<T, bool>)) {
      const TensorPtr dense_bias = bias == nullptr ? nullptr : Contiguous(*bias);
      ConvPlain<T>(problem, ConvArrayOf<T, const T>(input), ConvArrayOf<T, const T>(weight),
                   bias == nullptr ? nullptr : dense_bias->data<T>(), ConvArrayOf<T, T>(*result));
    }
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

extern "C" AOTITorchError aoti_torch_cpu_convolution(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle* bias, const int64_t* stride,
    int64_t stride_len_, const int64_t* padding, int64_t padding_len_, const int64_t* dilation,
    int64_t dilation_len_, int32_t transposed, const int64_t* output_padding,
    int64_t output_padding_len_, int64_t groups, AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    const auto list = [](const int64_t* data, int64_t size) {
      return Ints(data, static_cast<std::size_t>(size));
    };
    *ret0 = Convolution(*input, *weight, bias == nullptr ? nullptr : *bias,
                        {.stride = list(stride, stride_len_),
                         .padding = list(padding, padding_len_),
                         .padding_after = {},
                         .dilation = list(dilation, dilation_len_),
                         .output_padding = list(output_padding, output_padding_len_),
                         .transposed = transposed != 0,
                         .groups = groups})
                .release();
  });
}
