// Layers of neural networks: convolution, attention, embedding bags, recurrent layers,
// normalization, Fourier transforms.

#include <algorithm>
#include <vector>

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

// As generated code declares it.
extern "C" AOTITorchError aoti_slim_convolution_epilogue(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle scale, AtenTensorHandle shift,
    AtenTensorHandle residual, const std::int64_t* geometry, std::int64_t dims, std::int64_t groups,
    std::int32_t transposed, std::int32_t activation, std::int32_t residual_last, float low,
    float high, std::int32_t narrow, AtenTensorHandle into, AtenTensorHandle* ret0);
extern "C" AOTITorchError aoti_slim_convolution_chain(
    AtenTensorHandle input, std::int64_t count, const AtenTensorHandle* weights,
    const AtenTensorHandle* scales, const AtenTensorHandle* shifts, AtenTensorHandle residual,
    const std::int64_t* geometry, std::int64_t groups, const std::int32_t* activations,
    std::int32_t residual_last, const float* lows, const float* highs, std::int32_t narrow,
    AtenTensorHandle into, AtenTensorHandle* ret0);

namespace aoti::slim::fuzz {
namespace {

AOTITorchError Convolution(Case& c) {
  const std::int64_t dims = c.random.Pick<std::int64_t>({1, 2, 2, 2, 3});
  const bool transposed = c.random.Chance(0.3);
  const std::int64_t groups = c.random.Pick<std::int64_t>({1, 1, 2, 3, 8});
  const std::int64_t in = groups * c.random.Pick<std::int64_t>({1, 1, 2, 3, 8, 16});
  const std::int64_t out = groups * c.random.Pick<std::int64_t>({1, 1, 2, 3, 8, 17});
  Sizes input = {c.random.Range(0, 3), in};
  Sizes weight = transposed ? Sizes{in, out / groups} : Sizes{out, in / groups};
  Sizes stride, padding, dilation, output_padding;
  const bool plain = c.random.Chance(0.3);
  for (std::int64_t d = 0; d < dims; ++d) {
    const std::int64_t kernel = c.random.Range(1, 4);
    stride.push_back(plain ? 1 : c.random.Range(1, 3));
    dilation.push_back(plain ? 1 : c.random.Range(1, 3));
    padding.push_back(c.random.Range(0, 3));
    output_padding.push_back(transposed ? c.random.Range(0, stride.back() - 1) : 0);
    weight.push_back(kernel);
    input.push_back(dilation.back() * (kernel - 1) + 1 + c.random.Range(0, dims == 3 ? 4 : 17));
  }
  const ScalarType type = c.random.Chance(0.05) ? c.AnyType() : c.FloatType();
  const Handle x = c.In(type, input);
  const Handle w = c.In(type, weight);
  Handle* const bias = c.Maybe(c.In(type, {out}));
  const Sizes& s = c.List(stride);
  const Sizes& p = c.List(padding);
  const Sizes& d = c.List(dilation);
  const Sizes& o = c.List(output_padding);
  return aoti_torch_cpu_convolution(x, w, bias, s.data(), std::ssize(s), p.data(), std::ssize(p),
                                    d.data(), std::ssize(d), transposed ? 1 : 0, o.data(),
                                    std::ssize(o), c.Int(groups, groups), c.Result());
}

AOTITorchError ConvolutionEpilogue(Case& c) {
  const std::int64_t dims = c.random.Pick<std::int64_t>({1, 2, 2, 2, 3});
  const bool transposed = c.random.Chance(0.2);
  const std::int64_t groups = c.random.Pick<std::int64_t>({1, 1, 2, 8, 17});
  const std::int64_t in = groups * c.random.Pick<std::int64_t>({1, 1, 2, 3, 16});
  const std::int64_t out = groups * c.random.Pick<std::int64_t>({1, 1, 2, 3, 17});
  Sizes input = {c.random.Range(0, 2), in};
  Sizes weight = transposed ? Sizes{in, out / groups} : Sizes{out, in / groups};
  Sizes result = {input[0], out};
  Sizes stride, before, after, dilation;
  for (int d = 0; d < dims; ++d) {
    const std::int64_t kernel = c.random.Range(1, 5);
    stride.push_back(c.random.Range(1, 3));
    dilation.push_back(c.random.Range(1, 2));
    before.push_back(c.random.Range(0, 3));
    after.push_back(c.random.Range(transposed ? -2 : 0, 3));
    const std::int64_t reach = dilation.back() * (kernel - 1) + 1;
    weight.push_back(kernel);
    input.push_back(reach + c.random.Range(0, dims < 3 ? 17 : 5));
    const std::int64_t padding = before.back() + after.back();
    result.push_back(transposed ? (input.back() - 1) * stride.back() + reach - padding
                                : (input.back() + padding - reach) / stride.back() + 1);
    result.back() = std::max<std::int64_t>(result.back(), 1);
  }
  Sizes geometry;
  for (const Sizes* numbers : {&stride, &before, &after, &dilation}) {
    geometry.insert(geometry.end(), numbers->begin(), numbers->end());
  }
  const auto maybe = [&](const Sizes& sizes) {
    return c.random.Chance(0.4) ? nullptr : c.In(ScalarType::kFloat32, sizes);
  };
  const auto numbers = c.random.Pick<ScalarType>({ScalarType::kFloat32, ScalarType::kBFloat16});
  const Handle x = c.In(numbers, input);
  const Handle w = c.In(numbers, weight);
  const Handle scale = maybe({out});
  const Handle shift = maybe({out});
  const Handle residual = maybe(result);
  const auto activation = static_cast<std::int32_t>(c.Int(0, 4));
  const std::int32_t residual_last = c.Flag();
  const auto low = static_cast<float>(c.random.Unit() - 0.5);
  const std::int32_t narrow = c.Flag();
  const ScalarType dtype = narrow != 0 ? ScalarType::kBFloat16 : ScalarType::kFloat32;
  const Handle into = c.random.Chance(0.3) ? c.Out(dtype, result) : nullptr;
  return aoti_slim_convolution_epilogue(x, w, scale, shift, residual, c.List(geometry).data(), dims,
                                        c.Int(groups, groups), transposed ? 1 : 0, activation,
                                        residual_last, low, low + 1, narrow, into,
                                        into == nullptr ? c.Result() : nullptr);
}

AOTITorchError ConvolutionChain(Case& c) {
  const std::int64_t in = c.random.Pick<std::int64_t>({1, 3, 16, 24});
  const std::int64_t wide = c.random.Pick<std::int64_t>({2, 8, 17, 96});
  const std::int64_t out = c.random.Pick<std::int64_t>({1, 5, 24});
  const std::int64_t count = c.random.Range(2, 3);
  const bool large = c.random.Chance(0.05);
  Sizes input = {large ? 1 : c.random.Range(0, 2), in};
  Sizes filter = {wide, 1};
  Sizes result = {input[0], count == 2 ? wide : out};
  Sizes geometry(8);
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t kernel = c.random.Range(1, 4);
    geometry[d] = c.random.Range(1, 2);
    geometry[2 + d] = c.random.Range(0, 3);
    geometry[4 + d] = c.random.Range(0, 3);
    geometry[6 + d] = c.random.Range(1, 2);
    const std::int64_t reach = geometry[6 + d] * (kernel - 1) + 1;
    filter.push_back(kernel);
    input.push_back(reach + (large ? 60 : c.random.Range(0, 17)));
    const std::int64_t padded = input.back() + geometry[2 + d] + geometry[4 + d];
    result.push_back((padded - reach) / geometry[d] + 1);
  }
  const auto maybe = [&](const Sizes& sizes) {
    return c.random.Chance(0.4) ? nullptr : c.In(ScalarType::kFloat32, sizes);
  };
  const auto numbers = c.random.Pick<ScalarType>({ScalarType::kFloat32, ScalarType::kBFloat16});
  const Handle x = c.In(numbers, input);
  const Handle weights[3] = {c.In(numbers, {wide, in, 1, 1}), c.In(ScalarType::kFloat32, filter),
                             c.In(numbers, {out, wide, 1, 1})};
  const Handle scales[3] = {maybe({wide}), maybe({wide}), maybe({result[1]})};
  const Handle shifts[3] = {maybe({wide}), maybe({wide}), maybe({result[1]})};
  const Handle residual = maybe(result);
  std::int32_t activations[3];
  for (std::int32_t& activation : activations) {
    activation = static_cast<std::int32_t>(c.Int(0, 4));
  }
  const std::int32_t residual_last = c.Flag();
  const float lows[3] = {0, -1, 0.5};
  const float highs[3] = {6, 1, 2};
  const std::int32_t narrow = c.Flag();
  const ScalarType dtype = narrow != 0 ? ScalarType::kBFloat16 : ScalarType::kFloat32;
  const Handle into = c.random.Chance(0.3) ? c.Out(dtype, result) : nullptr;
  return aoti_slim_convolution_chain(x, c.Int(count, count), weights, scales, shifts, residual,
                                     c.List(geometry).data(), c.Int(wide, wide), activations,
                                     residual_last, lows, highs, narrow, into,
                                     into == nullptr ? c.Result() : nullptr);
}

AOTITorchError Attention(Case& c) {
  const std::int64_t batch = c.random.Range(0, 3);
  const std::int64_t shared = c.random.Range(1, 3);  // query heads per key head
  const std::int64_t heads = c.random.Range(1, 3);
  const std::int64_t queries = c.Size();
  const std::int64_t keys = c.Size();
  const std::int64_t features = c.Size();
  const ScalarType type = c.FloatType();
  const Handle q = c.In(type, {batch, heads * shared, queries, features});
  const Handle k = c.In(type, {batch, heads, keys, features});
  const Handle v = c.In(type, {batch, heads, keys, features});
  const ScalarType mask_type = c.random.Chance(0.5) ? type : ScalarType::kBool;
  Sizes mask = {batch, heads * shared, queries, keys};
  for (std::size_t d = 0; d < 3; ++d) {
    if (c.random.Chance(0.3)) mask[d] = 1;
  }
  if (c.random.Chance(0.2)) mask.erase(mask.begin(), mask.begin() + 2);
  Handle* const given = c.Maybe(c.In(mask_type, mask));
  const std::int32_t causal = given == nullptr || c.Wrong() ? c.Flag() : 0;
  return aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(
      q, k, v, c.Wrong() ? 0.5 : 0.0, causal, given, c.Maybe(c.Real()), c.Result(), c.Result());
}

template <auto kFunction>
AOTITorchError EmbeddingBag(Case& c) {
  const std::int64_t rows = c.Positive();
  const std::int64_t count = c.Size();
  const std::int64_t bags = c.Positive();
  const ScalarType type = c.FloatType();
  const ScalarType index = c.IndexType();
  const Handle weight = c.In(type, {rows, c.Size()});
  const Handle indices = c.Index(index, {count}, 0, rows);
  // Offsets must ascend from 0. With equal offsets, all bags but one are empty.
  const bool last = c.random.Chance(0.3);
  const Handle offsets =
      last && count > 0 ? c.Index(index, {1}, 0, 1) : c.Index(index, {bags}, 0, 1);
  const std::int64_t mode = c.Int(0, 2);
  Handle* const scale = mode == 0 || c.Wrong() ? c.Maybe(c.In(type, {count})) : nullptr;
  return kFunction(weight, indices, offsets, 0, mode, 0, scale, last ? 1 : 0,
                   c.random.Chance(0.5) ? -1 : c.Int(0, rows - 1), c.Result(), c.Result(),
                   c.Result(), c.Result());
}

AOTITorchError RnnLayer(Case& c) {
  const std::int64_t steps = c.Size();
  const std::int64_t batch = c.Size();
  const std::int64_t features = c.Size();
  const std::int64_t size = c.random.Chance(0.9) ? c.random.Range(1, 33) : 0;
  const ScalarType type =
      c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat32, ScalarType::kBFloat16});
  const bool biases = c.random.Chance(0.7);
  const Handle input = c.In(type, {steps, batch, features});
  const Handle input_weight = c.In(type, {4 * size, features});
  const Handle hidden_weight = c.In(type, {4 * size, size});
  const Handle input_bias = c.In(type, {biases ? 4 * size : 0});
  const Handle hidden_bias = c.In(type, {biases ? 4 * size : 0});
  const Sizes state = c.random.Chance(0.5) ? Sizes{1, batch, size} : Sizes{batch, size};
  const Handle hidden = c.In(type, state);
  const Handle cell = c.In(type, state);
  const Sizes& none = c.List({});
  return aoti_torch_cpu_mkldnn_rnn_layer(
      input, input_weight, hidden_weight, input_bias, hidden_bias, hidden, cell, c.Flag(),
      none.data(), std::ssize(none), c.Int(2, 2), c.Int(size, size), c.Int(1, 1), biases ? 1 : 0, 0,
      0, 0, c.Result(), c.Result(), c.Result(), c.OptionalResult());
}

// All layers of a recurrent network; kGates: how many its cell has.
template <Name kName, std::int64_t kGates>
AOTITorchError Recurrent(Case& c) {
  const std::int64_t steps = c.Size();
  const std::int64_t batch = c.Size();
  const std::int64_t features = c.Size();
  const std::int64_t size = c.random.Chance(0.9) ? c.random.Range(1, 33) : 0;
  const std::int64_t layers = c.random.Range(1, 2);
  const bool bidirectional = c.random.Chance(0.5), biases = c.random.Chance(0.7);
  const bool batch_first = c.random.Chance(0.5);
  const std::int64_t directions = bidirectional ? 2 : 1;
  const std::int64_t width =
      kGates == 4 && c.random.Chance(0.3) ? std::max<std::int64_t>(1, size / 2) : size;
  const ScalarType type = c.FloatType();
  std::vector<Handle> parameters;
  for (std::int64_t i = 0; i < layers * directions; ++i) {
    const std::int64_t inputs = i < directions ? features : width * directions;
    parameters.push_back(c.In(type, {kGates * size, inputs}));
    parameters.push_back(c.In(type, {kGates * size, width}));
    if (biases) parameters.push_back(c.In(type, {kGates * size}));
    if (biases) parameters.push_back(c.In(type, {kGates * size}));
    if (width != size) parameters.push_back(c.In(type, {width, size}));
  }
  if (c.Wrong()) parameters.pop_back();
  Stack stack(c);
  stack << c.In(type, batch_first ? Sizes{batch, steps, features} : Sizes{steps, batch, features});
  const Handle hidden = c.In(type, {layers * directions, batch, width});
  if (kGates == 4) {
    stack << std::vector<Handle>{hidden, c.In(type, {layers * directions, batch, size})};
  } else {
    stack << hidden;
  }
  stack << parameters << biases << c.Int(layers, layers) << (c.Wrong() ? 0.5 : 0.0) << c.Wrong()
        << bidirectional << batch_first;
  return stack.Call(kName.text, "input", kGates == 4 ? 3 : 2);
}

AOTITorchError FusedRmsNorm(Case& c) {
  const ScalarType type = c.FloatType();
  const Sizes shape = c.Shape(1, 5);
  const auto normalized = c.random.Range(1, std::ssize(shape));
  const Sizes last(shape.end() - normalized, shape.end());
  const Handle input = c.In(type, shape);
  Handle* const weight = c.Maybe(c.In(type, last));
  const Sizes& tail = c.List(last);
  return aoti_torch_cpu__fused_rms_norm(input, tail.data(), std::ssize(tail), weight,
                                        c.Maybe(c.Real()), c.Result(), c.Result());
}

Sizes SomeDims(Case& c, std::size_t rank) {
  Sizes dims;
  for (std::size_t d = 0; d < rank; ++d) {
    if (c.random.Chance(0.6)) dims.push_back(static_cast<std::int64_t>(d));
  }
  if (dims.empty()) dims.push_back(-1);
  return dims;
}

AOTITorchError FftC2c(Case& c) {
  const Sizes shape = c.Shape(1, 4);
  const ScalarType type = c.random.Pick({ScalarType::kComplex64, ScalarType::kComplex128});
  const Handle self = c.In(type, shape);
  const Sizes& dims = c.List(SomeDims(c, shape.size()));
  return aoti_torch_cpu__fft_c2c(self, dims.data(), std::ssize(dims), c.Int(0, 2), c.Flag(),
                                 c.Result());
}

AOTITorchError FftR2c(Case& c) {
  const Sizes shape = c.Shape(1, 4);
  const ScalarType type = c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64});
  const Handle self = c.In(type, shape);
  const Sizes& dims = c.List(SomeDims(c, shape.size()));
  return aoti_torch_cpu__fft_r2c(self, dims.data(), std::ssize(dims), c.Int(0, 2), c.Flag(),
                                 c.Result());
}

AOTITorchError GridSampler3d(Case& c) {
  const ScalarType type = c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64});
  const std::int64_t batch = c.random.Range(0, 2);
  const Handle input = c.In(type, {batch, c.random.Range(0, 3), c.random.Range(1, 7),
                                   c.random.Range(1, 7), c.random.Range(1, 7)});
  const Handle grid =
      c.In(type, {batch, c.random.Range(0, 5), c.random.Range(0, 5), c.random.Range(0, 5), 3});
  return aoti_torch_cpu_grid_sampler_3d(input, grid, c.Int(0, 1), c.Int(0, 2), c.Flag(),
                                        c.Result());
}

constexpr Op kOps[] = {
    {"convolution", Convolution},
    {"convolution_chain", ConvolutionChain},
    {"convolution_epilogue", ConvolutionEpilogue},
    {"_scaled_dot_product_flash_attention_for_cpu", Attention},
    {"_embedding_bag", EmbeddingBag<aoti_torch_cpu__embedding_bag>},
    {"_embedding_bag_forward_only", EmbeddingBag<aoti_torch_cpu__embedding_bag_forward_only>},
    {"mkldnn_rnn_layer", RnnLayer},
    {"aten::lstm.input", Recurrent<"aten::lstm", 4>},
    {"aten::gru.input", Recurrent<"aten::gru", 3>},
    {"aten::rnn_tanh.input", Recurrent<"aten::rnn_tanh", 1>},
    {"aten::rnn_relu.input", Recurrent<"aten::rnn_relu", 1>},
    {"_fused_rms_norm", FusedRmsNorm},
    {"_fft_c2c", FftC2c},
    {"_fft_r2c", FftR2c},
    {"grid_sampler_3d", GridSampler3d},
};

}  // namespace

std::span<const Op> NetworkOps() { return kOps; }

}  // namespace aoti::slim::fuzz
