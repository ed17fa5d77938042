// _dyn_quant_matmul_4bit: weights of 4 bits, and activations that are quantized row by row.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/ops/quantized_floats.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

using std::int64_t;

constexpr const char* kPack = "_dyn_quant_pack_4bit_weight";
constexpr const char* kMatmul = "_dyn_quant_matmul_4bit";

struct Shape {
  int64_t group, k, n;
  int64_t bytes() const { return n * (k / 2); }
  int64_t scales() const { return n * (k / group); }
};

Shape ShapeOf(const char* op, int64_t group, int64_t k, int64_t n) {
  Require(k > 0 && k % 2 == 0 && n >= 0, op, ": ", k, " in_features and ", n,
          " out_features: in_features must be a positive even number");
  Require(group == k || (group > 0 && group % 32 == 0 && k % group == 0), op, ": groups of ", group,
          ", must be a multiple of 32 that divides in_features, ", k, ", or in_features itself");
  CheckedProduct(n, k);
  return {group, k, n};
}

// Bytes, scales and the bias one after the other, all as floats: PyTorch's own layout on CPUs
// without KleidiAI, which packs them as bytes.
TensorPtr Pack(const Tensor& weights, const Tensor& scales, const Tensor* bias,
               const Shape& shape) {
  Require(weights.dtype() == ScalarType::kUInt8, kPack, ": the weight is ", NameOf(weights.dtype()),
          ", must be uint8");
  Require(weights.numel() == shape.bytes() && scales.numel() == shape.scales(), kPack, ": ",
          weights.numel(), " bytes and ", scales.numel(), " scales, must be ", shape.bytes(),
          " (two values in a byte) and ", shape.scales());
  Require(bias == nullptr || bias->numel() == shape.n, kPack, ": the bias must have ", shape.n,
          " elements");
  const int64_t biases = bias == nullptr ? 0 : shape.n;
  TensorPtr packed = Empty(ScalarType::kFloat32, {shape.bytes() + shape.scales() + biases});
  float* to = packed->data<float>();
  for (const Tensor* part : {&weights, &scales, bias}) {
    if (part == nullptr) continue;
    const TensorPtr floats = Converted(*part, ScalarType::kFloat32);
    to = std::copy_n(floats->data<float>(), floats->numel(), to);
  }
  return packed;
}

// Replaces a row by the nearest numbers that 8 bits and the row's range can represent.
void Quantize(const float* row, int64_t k, float* to) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < k; ++i) {
    low = std::min(low, row[i]);
    high = std::max(high, row[i]);
  }
  const float scale = low == high ? 1.0F : 255.0F / (high - low);
  const float step = scale == 0 ? 0.0F : 1.0F / scale;
  const float least = low * scale, most = high * scale;
  const float zero = (-128.0F + least) + (127.0F + most) > 0 ? -128.0F - least : 127.0F - most;
  const float shift = std::nearbyint(std::clamp(zero, -128.0F, 127.0F));
  for (int64_t i = 0; i < k; ++i) {
    to[i] = (std::clamp(std::round(row[i] * scale) + shift, -128.0F, 127.0F) - shift) * step;
  }
}

// Panels, as in kernels/gemm.h, of the weights of `count` outputs from the j-th one.
void Widen(const Shape& shape, const float* packed, int64_t j, int64_t count, float* panels) {
  const float* scales = packed + shape.bytes();
  for (int64_t r = 0; r < count; ++r) {
    const float* bytes = packed + (j + r) * (shape.k / 2);
    const float* scale = scales + (j + r) * (shape.k / shape.group);
    float* to = panels + r / kPanel * kPanel * shape.k + r % kPanel;
    for (int64_t i = 0; i < shape.k; ++i) {
      const auto byte = static_cast<std::uint8_t>(std::clamp(bytes[i / 2], 0.0F, 255.0F));
      const int value = i % 2 == 0 ? byte & 15 : byte >> 4;
      to[i * kPanel] = static_cast<float>(value - 8) * scale[i / shape.group];
    }
  }
}

TensorPtr Matmul(const Tensor& x, const Tensor& packed, const Shape& shape) {
  const bool wide = x.dtype() == ScalarType::kFloat32;
  Require(wide || (x.dtype() == ScalarType::kBFloat16 && shape.group == shape.k), kMatmul,
          ": takes float32, or bfloat16 with one group, not ", NameOf(x.dtype()),
          " with groups of ", shape.group);
  Require(x.rank() == 2 && x.size(1) == shape.k, kMatmul, ": the activations must have 2 dims, of ",
          "which the second one has size ", shape.k);
  Require(packed.dtype() == ScalarType::kFloat32, kMatmul, ": the packed weights are ",
          NameOf(packed.dtype()), ", must be float32: pack them where KleidiAI is not available");
  const int64_t without_bias = shape.bytes() + shape.scales();
  Require(packed.numel() == without_bias || packed.numel() == without_bias + shape.n, kMatmul,
          ": the packed weights have ", packed.numel(), " elements, must have ", without_bias,
          ", or ", without_bias + shape.n, " with a bias");
  const int64_t m = x.size(0);
  TensorPtr result = Empty(ScalarType::kFloat32, {m, shape.n});
  if (result->numel() != 0) {
    const TensorPtr given = Converted(x, ScalarType::kFloat32), weights = Contiguous(packed);
    Scratch<float> rows(static_cast<std::size_t>(m * shape.k));
    for (int64_t i = 0; i < m; ++i) {
      Quantize(given->data<float>() + i * shape.k, shape.k, rows.data() + i * shape.k);
    }
    const float* floats = weights->data<float>();
    ByFloats(
        shape.k, rows.data(), nullptr, *result, 0,
        [&](int64_t j, int64_t count, float* panels) { Widen(shape, floats, j, count, panels); });
    const float* bias = packed.numel() == without_bias ? nullptr : floats + without_bias;
    float* out = result->data<float>();
    for (int64_t i = 0; bias != nullptr && i < m * shape.n; ++i) out[i] += bias[i % shape.n];
  }
  return wide ? std::move(result) : Converted(*result, x.dtype());
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu__dyn_quant_pack_4bit_weight(
    AtenTensorHandle weights, AtenTensorHandle scales_zeros, AtenTensorHandle* bias,
    int64_t block_size, int64_t in_features, int64_t out_features, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Shape shape = ShapeOf(kPack, block_size, in_features, out_features);
    *ret0 = Pack(*weights, *scales_zeros, bias == nullptr ? nullptr : *bias, shape).release();
  });
}

AOTITorchError aoti_torch_cpu__dyn_quant_matmul_4bit(AtenTensorHandle inp,
                                                     AtenTensorHandle packed_weights,
                                                     int64_t block_size, int64_t in_features,
                                                     int64_t out_features, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Shape shape = ShapeOf(kMatmul, block_size, in_features, out_features);
    *ret0 = Matmul(*inp, *packed_weights, shape).release();
  });
}

}  // extern "C"
