// torchvision::deform_conv2d: a convolution whose filters read pixels at places that a tensor says.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/gemm/plain.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// A size or distance along both dims of the images.
struct Pair {
  std::int64_t height, width;
  std::int64_t area() const { return height * width; }
};

struct Problem {
  Pair stride, padding, dilation;
  std::int64_t groups, offset_groups;
  bool masked;
  std::int64_t batch = 0, in_channels = 0, out_channels = 0;
  Pair in = {}, kernel = {}, out = {};
};

struct Inputs {
  const Tensor &images, &weight, &offsets, &mask, &bias;
};

// The pixel at a place between pixels; outside of the image are zeros.
template <typename T>
T Interpolate(const T* image, Pair size, T y, T x) {
  if (!(y > T(-1) && y < static_cast<T>(size.height) && x > T(-1) &&
        x < static_cast<T>(size.width))) {
    return T(0);
  }
  const auto top = static_cast<std::int64_t>(std::floor(static_cast<double>(y)));
  const auto left = static_cast<std::int64_t>(std::floor(static_cast<double>(x)));
  const T below = static_cast<T>(y - static_cast<T>(top));
  const T right = static_cast<T>(x - static_cast<T>(left));
  const T above = static_cast<T>(T(1) - below), before = static_cast<T>(T(1) - right);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    const bool inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
    return inside ? image[row * size.width + column] : T(0);
  };
  return static_cast<T>(static_cast<T>(above * before) * at(top, left) +
                        static_cast<T>(above * right) * at(top, left + 1) +
                        static_cast<T>(below * before) * at(top + 1, left) +
                        static_cast<T>(below * right) * at(top + 1, left + 1));
}

// Writes what the filters of all channels read of one image: [channels, kernel, out].
template <typename T, typename Wide>
void Gather(const Problem& p, const Inputs& inputs, std::int64_t image, Wide* columns) {
  const std::int64_t places = p.out.area(), taps = p.kernel.area();
  const std::int64_t per_group = p.in_channels / p.offset_groups;
  const T* offsets = inputs.offsets.data<T>() + image * p.offset_groups * 2 * taps * places;
  const T* masks =
      p.masked ? inputs.mask.data<T>() + image * p.offset_groups * taps * places : nullptr;
  const std::int64_t grain = 4096 / std::max<std::int64_t>(1, places) + 1;
  internal::ParallelFor(0, p.in_channels * taps, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t line = first; line < last; ++line) {
      const std::int64_t channel = line / taps, tap = line % taps;
      const std::int64_t group = channel / per_group;
      const T* pixels = inputs.images.data<T>() + (image * p.in_channels + channel) * p.in.area();
      const T* down = offsets + (group * 2 * taps + 2 * tap) * places;
      const T* along = down + places;
      const T* mask = masks == nullptr ? nullptr : masks + (group * taps + tap) * places;
      Wide* to = columns + line * places;
      const std::int64_t row = tap / p.kernel.width * p.dilation.height - p.padding.height;
      const std::int64_t column = tap % p.kernel.width * p.dilation.width - p.padding.width;
      for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t y = place / p.out.width * p.stride.height + row;
        const std::int64_t x = place % p.out.width * p.stride.width + column;
        const T value =
            Interpolate<T>(pixels, p.in, static_cast<T>(static_cast<T>(y) + down[place]),
                           static_cast<T>(static_cast<T>(x) + along[place]));
        to[place] =
            static_cast<Wide>(mask == nullptr ? value : static_cast<T>(mask[place] * value));
      }
    }
  });
}

// out[m, n] = weight[m, k] * columns[k, n] + bias[m]; all are contiguous.
void Multiply(std::int64_t m, std::int64_t n, std::int64_t k, const float* weight,
              const float* columns, const float* bias, float* out) {
  Gemm(GemmF32{.m = m,
               .n = n,
               .k = k,
               .a = weight,
               .a_row = k,
               .a_col = 1,
               .b = columns,
               .b_row = n,
               .b_col = 1,
               .c = out,
               .c_row = n,
               .beta = 1,
               .bias = bias,
               .bias_row = 1});
}
void Multiply(std::int64_t m, std::int64_t n, std::int64_t k, const double* weight,
              const double* columns, const double* bias, double* out) {
  RunPlainMatmul(PlainMatmul<double, double>{.m = m,
                                             .n = n,
                                             .k = k,
                                             .a = weight,
                                             .a_row = k,
                                             .a_col = 1,
                                             .b = columns,
                                             .b_row = n,
                                             .b_col = 1,
                                             .c = out,
                                             .c_row = n,
                                             .c_col = 1,
                                             .alpha = 1,
                                             .beta = 1,
                                             .bias = bias,
                                             .bias_row = 1,
                                             .bias_col = 0});
}

template <typename T>
void Run(const Problem& p, const Inputs& inputs, const Tensor& out) {
  using Wide = Accumulator<T>;
  const ScalarType wide =
      std::is_same_v<Wide, double> ? ScalarType::kFloat64 : ScalarType::kFloat32;
  const TensorPtr weight = Converted(inputs.weight, wide), bias = Converted(inputs.bias, wide);
  const TensorPtr result =
      std::is_same_v<Wide, T> ? View(out, out.sizes(), out.strides(), 0) : Empty(wide, out.sizes());
  const std::int64_t places = p.out.area(), taps = p.kernel.area();
  const std::int64_t filters = p.out_channels / p.groups;
  const std::int64_t read = p.in_channels / p.groups * taps;
  Scratch<Wide> columns(
      static_cast<std::size_t>(CheckedProduct(CheckedProduct(p.in_channels, taps), places)));
  for (std::int64_t image = 0; image < p.batch; ++image) {
    Gather<T>(p, inputs, image, columns.data());
    for (std::int64_t g = 0; g < p.groups; ++g) {
      Multiply(filters, places, read, weight->data<Wide>() + g * filters * read,
               columns.data() + g * read * places, bias->data<Wide>() + g * filters,
               result->data<Wide>() + (image * p.out_channels + g * filters) * places);
    }
  }
  if constexpr (!std::is_same_v<Wide, T>) Copy(out, *result);
}

void RequireSizes(const char* name, const Tensor& tensor,
                  std::initializer_list<std::int64_t> sizes) {
  std::string given, wanted;
  for (const std::int64_t size : tensor.sizes()) given += StrCat(given.empty() ? "" : ", ", size);
  for (const std::int64_t size : sizes) wanted += StrCat(wanted.empty() ? "" : ", ", size);
  Require(std::ranges::equal(tensor.sizes(), sizes), "deform_conv2d: ", name, " has the sizes [",
          given, "], must be [", wanted, "]");
}

// The size of the result along one dim; the arguments were checked.
std::int64_t OutSize(std::int64_t in, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, std::int64_t dilation) {
  const std::int64_t reach = CheckedSum(CheckedProduct(dilation, kernel - 1), 1);
  const std::int64_t size = CheckedSum(in, CheckedProduct(2, padding)) - reach;
  return size < 0 ? 0 : size / stride + 1;
}

void Complete(Problem& p, const Inputs& inputs) {
  const Tensor &images = inputs.images, &weight = inputs.weight;
  for (const auto& [name, tensor] : {std::pair("input", &images), std::pair("weight", &weight)}) {
    Require(tensor->rank() == 4, "deform_conv2d: ", name, " has ", tensor->rank(),
            " dims, must have 4");
  }
  for (const Tensor* tensor : {&weight, &inputs.offsets, &inputs.mask, &inputs.bias}) {
    Require(tensor->dtype() == images.dtype(), "deform_conv2d: tensors of ", NameOf(images.dtype()),
            " and ", NameOf(tensor->dtype()), ", must have the same dtype");
  }
  Require(p.stride.height > 0 && p.stride.width > 0 && p.dilation.height > 0 &&
              p.dilation.width > 0 && p.groups > 0 && p.offset_groups > 0,
          "deform_conv2d: strides, dilations and groups must be positive");
  Require(p.padding.height >= 0 && p.padding.width >= 0,
          "deform_conv2d: the padding must not be negative");
  p.batch = images.size(0);
  p.in_channels = images.size(1);
  p.out_channels = weight.size(0);
  p.in = {images.size(2), images.size(3)};
  p.kernel = {weight.size(2), weight.size(3)};
  Require(p.kernel.height > 0 && p.kernel.width > 0, "deform_conv2d: the filters are empty");
  Require(p.in_channels % p.groups == 0 && p.out_channels % p.groups == 0 &&
              weight.size(1) == p.in_channels / p.groups,
          "deform_conv2d: ", p.in_channels, " channels and ", p.out_channels, " filters of ",
          weight.size(1), " channels don't fit ", p.groups, " groups");
  Require(p.in_channels % p.offset_groups == 0, "deform_conv2d: ", p.in_channels,
          " channels are no multiple of ", p.offset_groups, " groups of offsets");
  p.out = {
      OutSize(p.in.height, p.kernel.height, p.stride.height, p.padding.height, p.dilation.height),
      OutSize(p.in.width, p.kernel.width, p.stride.width, p.padding.width, p.dilation.width)};
  Require(p.out.height > 0 && p.out.width > 0, "deform_conv2d: the size of the result is [",
          p.out.height, ", ", p.out.width, "], must be positive");
  const std::int64_t taps = CheckedProduct(p.offset_groups, p.kernel.area());
  RequireSizes("offset", inputs.offsets,
               {p.batch, CheckedProduct(2, taps), p.out.height, p.out.width});
  if (p.masked) RequireSizes("mask", inputs.mask, {p.batch, taps, p.out.height, p.out.width});
  RequireSizes("bias", inputs.bias, {p.out_channels});
}

TensorPtr DeformConv(Problem p, const Inputs& inputs) {
  Complete(p, inputs);
  TensorPtr out =
      Empty(inputs.images.dtype(), {p.batch, p.out_channels, p.out.height, p.out.width});
  if (out->numel() == 0) return out;
  const TensorPtr images = Contiguous(inputs.images), offsets = Contiguous(inputs.offsets);
  const TensorPtr mask = p.masked ? Contiguous(inputs.mask) : nullptr;
  const Inputs plain = {*images, inputs.weight, *offsets, p.masked ? *mask : inputs.mask,
                        inputs.bias};
  DispatchFloating(images->dtype(), [&]<typename T>() {
    Require(!std::is_same_v<T, BFloat16>, "deform_conv2d: not supported for bfloat16");
    Run<T>(p, plain, *out);
  });
  return out;
}

void DeformConvOp(StableIValue* stack) {
  const TensorPtr images = TakeTensor(stack[0]), weight = TakeTensor(stack[1]);
  const TensorPtr offsets = TakeTensor(stack[2]), mask = TakeTensor(stack[3]);
  const TensorPtr bias = TakeTensor(stack[4]);
  const auto pair = [&](int at) { return Pair{TakeInt(stack[at]), TakeInt(stack[at + 1])}; };
  const Problem problem = {.stride = pair(5),
                           .padding = pair(7),
                           .dilation = pair(9),
                           .groups = TakeInt(stack[11]),
                           .offset_groups = TakeInt(stack[12]),
                           .masked = TakeBool(stack[13])};
  stack[0] = Give(DeformConv(problem, {*images, *weight, *offsets, *mask, *bias}));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(torchvision_deform_conv2d, "torchvision::deform_conv2d", "",
                        aoti::slim::DeformConvOp)
