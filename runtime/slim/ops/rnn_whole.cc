// LSTM, GRU and RNN of any number of steps: all layers and directions in one call.

#include <algorithm>
#include <string>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/packed_matrix.h"
#include "runtime/slim/ops/rnn_steps.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

struct Options {
  const char* name;
  RnnCell cell;
  bool has_biases;
  std::int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
};

std::string List(Ints sizes) {
  std::string text;
  for (const std::int64_t size : sizes) {
    text += text.empty() ? "[" : ", ";
    text += std::to_string(size);
  }
  return text.empty() ? "[]" : text + "]";
}

// The parameters of one direction of one layer.
struct Parameters {
  const Tensor *input_weight, *hidden_weight, *input_bias, *hidden_bias, *projection;
};

// A checked call. `size` and `width` are as in RnnSteps.
class Whole {
 public:
  Whole(const Options& options, const Tensor& input, const Tensor& hidden, const Tensor* cell,
        const TakenTensors& parameters)
      : options_(options), hidden_(hidden), cell_(cell), parameters_(parameters) {
    const char* name = options.name;
    Require(input.rank() == 3, name, ": the input has ", input.rank(), " dims, must have 3");
    Require(IsFloating(input.dtype()), name, ": the input is ", NameOf(input.dtype()),
            ", must be float32, float64, bfloat16 or float16");
    Require(!options.train || options.dropout == 0 || options.layers == 1, name,
            ": dropout in training is not supported");
    Require(options.layers > 0, name, ": the number of layers is ", options.layers,
            ", must be positive");
    input_ = options.batch_first ? Transposed(input)
                                 : View(input, input.sizes(), input.strides(), input.offset());
    Require(input_->size(0) > 0, name, ": the input has no steps, must have at least 1");
    CheckState("the hidden state", hidden, hidden.rank() == 3 ? hidden.size(2) : 0);
    width_ = size_ = hidden.size(2);
    if (cell != nullptr) {
      CheckState("the cell state", *cell, cell->rank() == 3 ? cell->size(2) : 0);
      size_ = cell->size(2);
    }
    Require(size_ > 0 && width_ > 0, name, ": the hidden size is ", std::min(size_, width_),
            ", must be positive");
    const std::size_t groups =
        static_cast<std::size_t>(options.layers) * static_cast<std::size_t>(options.directions());
    Require(parameters.size() == groups * group(), name, ": there are ", parameters.size(),
            " parameters, must be ", groups * group());
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      for (std::int64_t direction = 0; direction < options.directions(); ++direction) {
        CheckParameters(Of(layer, direction), layer);
      }
    }
  }

  // T is what it computes in. Returns the output, the last hidden states and cell states.
  template <typename T>
  void Run(TensorPtr (&results)[3]) const {
    const ScalarType dtype = input_->dtype();
    constexpr ScalarType kType =
        std::is_same_v<T, double> ? ScalarType::kFloat64 : ScalarType::kFloat32;
    const std::int64_t steps = input_->size(0), batch = input_->size(1);
    const std::int64_t row = width_ * options_.directions();
    const auto copied = [](const Tensor* tensor) {
      TensorPtr copy;
      if (tensor != nullptr) {
        copy = Empty(kType, tensor->sizes());
        Copy(*copy, *tensor);
      }
      return copy;
    };
    const auto data = [](const TensorPtr& tensor) {
      return tensor == nullptr ? nullptr : tensor->template data<T>();
    };
    const TensorPtr hidden = copied(&hidden_), cell = copied(cell_);
    TensorPtr input = Converted(*input_, kType);
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      TensorPtr output = Empty(kType, {steps, batch, row});
      ForDirections([&](std::int64_t direction) {
        const Parameters own = Of(layer, direction);
        const std::int64_t at = (layer * options_.directions() + direction) * batch;
        const auto converted = [](const Tensor* tensor) {
          return tensor == nullptr ? nullptr : Converted(*tensor, kType);
        };
        const auto packed = [](const Tensor* tensor) {
          return tensor == nullptr ? nullptr : PackedWeightOf(*tensor);
        };
        const TensorPtr input_weight = converted(own.input_weight);
        const TensorPtr hidden_weight = converted(own.hidden_weight);
        const TensorPtr input_bias = converted(own.input_bias);
        const TensorPtr hidden_bias = converted(own.hidden_bias);
        const TensorPtr projection = converted(own.projection);
        RunRnn(RnnSteps<T>{.cell = options_.cell,
                           .reverse = direction == 1,
                           .steps = steps,
                           .batch = batch,
                           .features = input->size(2),
                           .size = size_,
                           .width = width_,
                           .input = data(input),
                           .input_weight = data(input_weight),
                           .packed_input = packed(own.input_weight),
                           .hidden_weight = data(hidden_weight),
                           .packed_hidden = packed(own.hidden_weight),
                           .input_bias = data(input_bias),
                           .hidden_bias = data(hidden_bias),
                           .projection = data(projection),
                           .packed_projection = packed(own.projection),
                           .hidden = data(hidden) + at * width_,
                           .cell_state = cell == nullptr ? nullptr : data(cell) + at * size_,
                           .output = data(output) + direction * width_,
                           .output_row = row});
      });
      input = std::move(output);
    }
    results[0] = Converted(*input, dtype);
    if (options_.batch_first) results[0] = Transposed(*results[0]);
    results[1] = Converted(*hidden, dtype);
    if (cell != nullptr) results[2] = Converted(*cell, dtype);
  }

  void Run(TensorPtr (&results)[3]) const {
    if (input_->dtype() == ScalarType::kFloat64) {
      Run<double>(results);
    } else {
      Run<float>(results);
    }
  }

 private:
  // Calls run(direction) for each one: on a thread each, unless all threads are better used within
  // a step: it is large, or the weight that it reads stays in the caches of all of them together.
  template <typename Body>
  void ForDirections(const Body& run) const {
    constexpr std::int64_t kLargeStep = 1 << 20;  // multiplications
    constexpr std::int64_t kCached = 1 << 19;     // floats
    const std::int64_t directions = options_.directions(), threads = internal::MaxThreads();
    const std::int64_t weight = GatesOf(options_.cell) * size_ * width_;
    const std::int64_t step = input_->size(1) * weight;
    const bool stays_in_parts = weight > kCached && weight <= kCached * threads;
    const bool apart = !stays_in_parts && (step < kLargeStep || threads <= directions);
    internal::ParallelFor(0, directions, apart ? 1 : directions,
                          [&](std::int64_t first, std::int64_t last) {
                            for (std::int64_t d = first; d < last; ++d) run(d);
                          });
  }

  static TensorPtr Transposed(const Tensor& t) {
    const std::int64_t sizes[] = {t.size(1), t.size(0), t.size(2)};
    const std::int64_t strides[] = {t.stride(1), t.stride(0), t.stride(2)};
    return View(t, sizes, strides, t.offset());
  }

  bool projected() const { return size_ != width_; }
  std::size_t group() const { return 2 + (options_.has_biases ? 2 : 0) + (projected() ? 1 : 0); }

  Parameters Of(std::int64_t layer, std::int64_t direction) const {
    std::size_t i = static_cast<std::size_t>(layer * options_.directions() + direction) * group();
    Parameters own = {};
    own.input_weight = parameters_[i++];
    own.hidden_weight = parameters_[i++];
    if (options_.has_biases) {
      own.input_bias = parameters_[i++];
      own.hidden_bias = parameters_[i++];
    }
    if (projected()) own.projection = parameters_[i];
    return own;
  }

  void CheckTensor(const char* what, const Tensor& tensor, Ints expected) const {
    Require(std::ranges::equal(tensor.sizes(), expected), options_.name, ": ", what, " is ",
            List(tensor.sizes()), ", must be ", List(expected));
    Require(tensor.dtype() == input_->dtype(), options_.name, ": ", what, " is ",
            NameOf(tensor.dtype()), ", must be ", NameOf(input_->dtype()), " as the input");
  }

  void CheckState(const char* what, const Tensor& state, std::int64_t size) const {
    const std::int64_t expected[] = {CheckedProduct(options_.layers, options_.directions()),
                                     input_->size(1), size};
    CheckTensor(what, state, expected);
  }

  void CheckParameters(const Parameters& own, std::int64_t layer) const {
    const std::int64_t rows = CheckedProduct(GatesOf(options_.cell), size_);
    const std::int64_t features =
        layer == 0 ? input_->size(2) : CheckedProduct(width_, options_.directions());
    const std::int64_t input_weight[] = {rows, features};
    CheckTensor("the input's weight", *own.input_weight, input_weight);
    const std::int64_t hidden_weight[] = {rows, width_};
    CheckTensor("the hidden state's weight", *own.hidden_weight, hidden_weight);
    if (own.input_bias != nullptr) {
      CheckTensor("the input's bias", *own.input_bias, Ints(&rows, 1));
      CheckTensor("the hidden state's bias", *own.hidden_bias, Ints(&rows, 1));
    }
    const std::int64_t projection[] = {width_, size_};
    if (own.projection != nullptr) CheckTensor("the projection", *own.projection, projection);
  }

  const Options& options_;
  const Tensor& hidden_;
  const Tensor* cell_;
  const TakenTensors& parameters_;
  TensorPtr input_;  // [steps, batch, features]
  std::int64_t size_ = 0, width_ = 0;
};

Options TakeOptions(const char* name, RnnCell cell, const StableIValue* stack) {
  return {.name = name,
          .cell = cell,
          .has_biases = TakeBool(stack[3]),
          .layers = TakeInt(stack[4]),
          .dropout = TakeFloat(stack[5]),
          .train = TakeBool(stack[6]),
          .bidirectional = TakeBool(stack[7]),
          .batch_first = TakeBool(stack[8])};
}

void Lstm(StableIValue* stack) {
  const TensorPtr input = TakeTensor(stack[0]);
  const TakenTensors states(stack[1]);
  const TakenTensors parameters(stack[2]);
  const Options options = TakeOptions("lstm", RnnCell::kLstm, stack);
  Require(states.size() == 2, "lstm: there are ", states.size(), " states, must be 2");
  TensorPtr results[3];
  Whole(options, *input, *states[0], states[1], parameters).Run(results);
  for (int i = 0; i < 3; ++i) stack[i] = Give(std::move(results[i]));
}

template <RnnCell kCell>
void Plain(const char* name, StableIValue* stack) {
  const TensorPtr input = TakeTensor(stack[0]);
  const TensorPtr hidden = TakeTensor(stack[1]);
  const TakenTensors parameters(stack[2]);
  const Options options = TakeOptions(name, kCell, stack);
  TensorPtr results[3];
  Whole(options, *input, *hidden, nullptr, parameters).Run(results);
  for (int i = 0; i < 2; ++i) stack[i] = Give(std::move(results[i]));
}

void Gru(StableIValue* stack) { Plain<RnnCell::kGru>("gru", stack); }
void RnnTanh(StableIValue* stack) { Plain<RnnCell::kTanh>("rnn_tanh", stack); }
void RnnRelu(StableIValue* stack) { Plain<RnnCell::kRelu>("rnn_relu", stack); }

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_lstm_input, "aten::lstm", "input", aoti::slim::Lstm)
AOTI_SLIM_DISPATCHER_OP(aten_gru_input, "aten::gru", "input", aoti::slim::Gru)
AOTI_SLIM_DISPATCHER_OP(aten_rnn_tanh_input, "aten::rnn_tanh", "input", aoti::slim::RnnTanh)
AOTI_SLIM_DISPATCHER_OP(aten_rnn_relu_input, "aten::rnn_relu", "input", aoti::slim::RnnRelu)
