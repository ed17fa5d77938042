// LSTM layers. Inductor writes kernels for GRU, RNN and LSTM with projections. For a plain LSTM, it
// calls mkldnn_rnn_layer for one direction of one layer at a time.

#include "runtime/slim/kernels/rnn.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

constexpr std::int64_t kGates = 4;

const RnnKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kRnn); }

struct Layer {
  const Tensor* input;          // [steps, batch, features]
  const Tensor* input_weight;   // [4 * size, features]
  const Tensor* hidden_weight;  // [4 * size, size]
  const Tensor* input_bias;     // [4 * size]; null if there are no biases
  const Tensor* hidden_bias;
  const Tensor* hidden;  // [batch, size] or [1, batch, size]
  const Tensor* cell;
  std::int64_t size;
  bool reverse;
};

void CheckSize(const char* what, const Tensor& tensor, Ints expected) {
  if (std::ranges::equal(tensor.sizes(), expected)) return;
  const auto list = [](Ints sizes) {
    std::string text;
    for (const std::int64_t size : sizes) {
      text += text.empty() ? "[" : ", ";
      text += std::to_string(size);
    }
    return text + "]";
  };
  throw OpError(StrCat("lstm: ", what, " is ", list(tensor.sizes()), ", must be ", list(expected)));
}

void Check(const Layer& layer) {
  const Tensor& input = *layer.input;
  Require(input.rank() == 3, "lstm: the input has ", input.rank(),
          " dims, must have 3: steps, batch, features");
  Require(layer.size > 0, "lstm: the hidden size is ", layer.size, ", must be positive");
  Require(IsFloating(input.dtype()) && input.dtype() != ScalarType::kFloat64, "lstm: the input is ",
          NameOf(input.dtype()), ", must be float32, bfloat16 or float16");
  const std::int64_t rows = CheckedProduct(kGates, layer.size);
  const std::int64_t input_weight[] = {rows, input.size(2)};
  CheckSize("the input's weight", *layer.input_weight, input_weight);
  const std::int64_t hidden_weight[] = {rows, layer.size};
  CheckSize("the hidden state's weight", *layer.hidden_weight, hidden_weight);
  const std::int64_t state[] = {1, input.size(1), layer.size};
  const auto skipped = [&](const Tensor& tensor) {
    return Ints(state).subspan(tensor.rank() == 3 ? 0 : 1);
  };
  CheckSize("the hidden state", *layer.hidden, skipped(*layer.hidden));
  CheckSize("the cell state", *layer.cell, skipped(*layer.cell));
  if (layer.input_bias == nullptr) return;
  CheckSize("the input's bias", *layer.input_bias, Ints(&rows, 1));
  CheckSize("the hidden state's bias", *layer.hidden_bias, Ints(&rows, 1));
}

struct LstmResults {
  TensorPtr output, hidden, cell;
};

// gates[step, batch, 4 * size] = input * input_weight^T + biases, for all steps at once.
void InputGates(const Layer& layer, const float* bias, float* gates) {
  const TensorPtr input = Converted(*layer.input, ScalarType::kFloat32);
  const TensorPtr weight = Converted(*layer.input_weight, ScalarType::kFloat32);
  GemmF32 product = {};
  product.m = input->size(0) * input->size(1);
  product.n = kGates * layer.size;
  product.k = input->size(2);
  product.a = input->data<float>();
  product.a_row = product.k;
  product.a_col = 1;
  product.b = weight->data<float>();
  product.b_row = 1;
  product.b_col = product.k;
  product.c = gates;
  product.c_row = product.n;
  product.beta = bias == nullptr ? 0 : 1;
  product.bias = bias;
  product.bias_col = 1;
  Gemm(product);
}

LstmResults Lstm(const Layer& layer) {
  Check(layer);
  const std::int64_t steps = layer.input->size(0);
  const std::int64_t batch = layer.input->size(1);
  const std::int64_t size = layer.size;
  const std::int64_t width = kGates * size;
  const ScalarType dtype = layer.input->dtype();

  Scratch<float> bias(layer.input_bias == nullptr ? 0 : static_cast<std::size_t>(width));
  if (layer.input_bias != nullptr) {
    const TensorPtr first = Converted(*layer.input_bias, ScalarType::kFloat32);
    const TensorPtr second = Converted(*layer.hidden_bias, ScalarType::kFloat32);
    for (std::int64_t i = 0; i < width; ++i) {
      bias[i] = first->data<float>()[i] + second->data<float>()[i];
    }
  }
  Scratch<float> gates(static_cast<std::size_t>(steps * batch * width));
  InputGates(layer, layer.input_bias == nullptr ? nullptr : bias.data(), gates.data());

  const TensorPtr weight = Converted(*layer.hidden_weight, ScalarType::kFloat32);
  const TensorPtr first_hidden = Converted(*layer.hidden, ScalarType::kFloat32);
  const TensorPtr cell = Empty(ScalarType::kFloat32, layer.cell->sizes());
  Copy(*cell, *layer.cell);
  const TensorPtr output = Empty(ScalarType::kFloat32, {steps, batch, size});
  const RnnKernels& kernels = Kernels();
  const float* hidden = first_hidden->data<float>();
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t step = layer.reverse ? steps - 1 - i : i;
    float* own = gates.data() + step * batch * width;
    GemmF32 product = {};
    product.m = batch;
    product.n = width;
    product.k = size;
    product.a = hidden;
    product.a_row = size;
    product.a_col = 1;
    product.b = weight->data<float>();
    product.b_row = 1;
    product.b_col = size;
    product.c = own;
    product.c_row = width;
    product.beta = 1;
    product.bias = own;
    product.bias_row = width;
    product.bias_col = 1;
    Gemm(product);
    float* next = output->data<float>() + step * batch * size;
    const std::int64_t grain = 4096 / size + 1;
    internal::ParallelFor(0, batch, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        kernels.lstm(own + row * width, size, cell->data<float>() + row * size, next + row * size);
      }
    });
    hidden = next;
  }
  LstmResults results;
  results.output = Converted(*output, dtype);
  results.hidden = Empty(dtype, layer.hidden->sizes());
  Copy(*results.hidden,
       *View(steps == 0 ? *first_hidden : *output, layer.hidden->sizes(), results.hidden->strides(),
             steps == 0      ? first_hidden->offset()
             : layer.reverse ? 0
                             : (steps - 1) * batch * size));
  results.cell = Converted(*cell, dtype);
  return results;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu_mkldnn_rnn_layer(
    AtenTensorHandle input, AtenTensorHandle weight0, AtenTensorHandle weight1,
    AtenTensorHandle weight2, AtenTensorHandle weight3, AtenTensorHandle hx_, AtenTensorHandle cx_,
    int32_t reverse, const int64_t*, int64_t batch_sizes_len_, int64_t mode, int64_t hidden_size,
    int64_t, int32_t has_biases, int32_t, int32_t, int32_t, AtenTensorHandle* ret0,
    AtenTensorHandle* ret1, AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return Guarded([&] {
    constexpr int64_t kLstm = 2;
    Require(mode == kLstm, "recurrent layer: mode is ", mode, ", only 2 (LSTM) is supported");
    Require(batch_sizes_len_ == 0, "lstm: packed sequences are not supported");
    LstmResults results =
        Lstm({input, weight0, weight1, has_biases != 0 ? weight2 : nullptr,
              has_biases != 0 ? weight3 : nullptr, hx_, cx_, hidden_size, reverse != 0});
    TensorPtr workspace = Empty(ScalarType::kUInt8, {0});  // for training
    *ret0 = results.output.release();
    *ret1 = results.hidden.release();
    *ret2 = results.cell.release();
    *ret3 = workspace.release();
  });
}

}  // extern "C"
