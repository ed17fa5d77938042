// LSTM layers with a constant number of steps: Inductor calls mkldnn_rnn_layer for one direction of
// one layer at a time, and writes kernels for GRU, RNN and LSTM with projections. rnn_whole.cc has
// the layers whose number of steps varies.

#include <algorithm>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/rnn_steps.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

constexpr std::int64_t kGates = 4;

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

LstmResults Lstm(const Layer& layer) {
  Check(layer);
  const std::int64_t steps = layer.input->size(0);
  const std::int64_t batch = layer.input->size(1);
  const ScalarType dtype = layer.input->dtype();
  const auto floats = [](const Tensor* tensor) {
    return tensor == nullptr ? nullptr : Converted(*tensor, ScalarType::kFloat32);
  };
  const auto copied = [](const Tensor& tensor) {
    TensorPtr copy = Empty(ScalarType::kFloat32, tensor.sizes());
    Copy(*copy, tensor);
    return copy;
  };
  const auto data = [](const TensorPtr& tensor) {
    return tensor == nullptr ? nullptr : tensor->data<float>();
  };
  const TensorPtr input = floats(layer.input);
  const TensorPtr input_weight = floats(layer.input_weight);
  const TensorPtr hidden_weight = floats(layer.hidden_weight);
  const TensorPtr input_bias = floats(layer.input_bias);
  const TensorPtr hidden_bias = floats(layer.hidden_bias);
  const TensorPtr hidden = copied(*layer.hidden);
  const TensorPtr cell = copied(*layer.cell);
  const TensorPtr output = Empty(ScalarType::kFloat32, {steps, batch, layer.size});
  RunRnn(RnnSteps<float>{.cell = RnnCell::kLstm,
                         .reverse = layer.reverse,
                         .steps = steps,
                         .batch = batch,
                         .features = input->size(2),
                         .size = layer.size,
                         .width = layer.size,
                         .input = data(input),
                         .input_weight = data(input_weight),
                         .hidden_weight = data(hidden_weight),
                         .input_bias = data(input_bias),
                         .hidden_bias = data(hidden_bias),
                         .hidden = data(hidden),
                         .cell_state = data(cell),
                         .output = data(output),
                         .output_row = layer.size});
  return {Converted(*output, dtype), Converted(*hidden, dtype), Converted(*cell, dtype)};
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
