#include "runtime/slim/ops/rnn_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/gemm/plain.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/rnn.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

// Gates are computed for this many elements at a time, which stay in the cache.
constexpr std::int64_t kGateElements = 1 << 17;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The kernels of float, for double.
void LstmStep(const double* gates, std::int64_t size, double* cell, double* hidden) {
  for (std::int64_t i = 0; i < size; ++i) {
    cell[i] =
        Sigmoid(gates[size + i]) * cell[i] + Sigmoid(gates[i]) * std::tanh(gates[2 * size + i]);
    hidden[i] = Sigmoid(gates[3 * size + i]) * std::tanh(cell[i]);
  }
}

void GruStep(const double* input, const double* hidden, std::int64_t size, const double* before,
             double* after) {
  for (std::int64_t i = 0; i < size; ++i) {
    const double reset = Sigmoid(input[i] + hidden[i]);
    const double update = Sigmoid(input[size + i] + hidden[size + i]);
    const double fresh = std::tanh(input[2 * size + i] + reset * hidden[2 * size + i]);
    after[i] = (before[i] - fresh) * update + fresh;
  }
}

void PlainStep(const double* gates, std::int64_t size, bool relu, double* hidden) {
  for (std::int64_t i = 0; i < size; ++i) {
    // As a comparison with NaN is false, NaN stays.
    hidden[i] = !relu ? std::tanh(gates[i]) : gates[i] < 0 ? 0 : gates[i];
  }
}

void LstmStep(const float* gates, std::int64_t size, float* cell, float* hidden) {
  AOTI_SLIM_CURRENT_KERNELS(kRnn).lstm(gates, size, cell, hidden);
}

void GruStep(const float* input, const float* hidden, std::int64_t size, const float* before,
             float* after) {
  AOTI_SLIM_CURRENT_KERNELS(kRnn).gru(input, hidden, size, before, after);
}

void PlainStep(const float* gates, std::int64_t size, bool relu, float* hidden) {
  AOTI_SLIM_CURRENT_KERNELS(kRnn).plain(gates, size, relu, hidden);
}

// With at least this many steps, packing weights that are not packed pays: each step reads one of
// them, and each chunk of steps the other one.
constexpr std::int64_t kPackedSteps = 4;

// b[n, k] in the layout of kernels/gemm.h.
void Pack(std::int64_t n, std::int64_t k, const float* b, float* packed) {
  if (k == 0) return;
  const TransposeFunction transpose = AOTI_SLIM_CURRENT_KERNELS(kGemm).transpose[0];
  const std::int64_t grain = (1 << 16) / (kPanel * k) + 1;
  internal::ParallelFor(0, CeilDiv(n, kPanel), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin * kPanel; j < std::min(end * kPanel, n); j += kPanel) {
      float* panel = packed + j * k;
      const std::int64_t columns = std::min<std::int64_t>(kPanel, n - j);
      if (columns < kPanel) std::fill_n(panel, kPanel * k, 0.0f);
      transpose(b + j * k, k, columns, k, panel, kPanel);
    }
  });
}

// A weight b[n, k] of a layer in the layout of kernels/gemm.h: the given copy, or one for this call
// if that pays.
class PackedOnce {
 public:
  template <typename T>
  PackedOnce(const RnnSteps<T>& layer, const float* given, std::int64_t n, std::int64_t k,
             const T* b)
      : data_(given) {
    if constexpr (std::is_same_v<T, float>) {
      if (given != nullptr || layer.steps < kPackedSteps) return;
      own_.emplace(static_cast<std::size_t>(RoundUp(n, kPanel) * k));
      Pack(n, k, b, own_->data());
      data_ = own_->data();
    }
  }
  const float* data() const { return data_; }  // null: the weight is better read as it is

 private:
  std::optional<Scratch<float>> own_;
  const float* data_;
};

// c[m, n] = a[m, k] * b[n, k]^T + bias, where bias may be null, or c itself. packed: null, or b as
// Pack() writes it.
template <typename T>
void Product(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
             const T* b, const float* packed, T* c, std::int64_t c_row, const T* bias,
             std::int64_t bias_row) {
  std::conditional_t<std::is_same_v<T, float>, GemmF32, PlainMatmul<double, double>> product = {};
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = a;
  product.a_row = a_row;
  product.a_col = 1;
  product.b = b;
  product.b_row = 1;
  product.b_col = k;
  product.c = c;
  product.c_row = c_row;
  product.c_col = 1;
  product.alpha = 1;
  product.beta = bias == nullptr ? 0 : 1;
  product.bias = bias;
  product.bias_row = bias_row;
  product.bias_col = 1;
  if constexpr (std::is_same_v<T, float>) {
    product.packed_b = packed;
    Gemm(product);
  } else {
    RunPlainMatmul(product);
  }
}

// A thread takes the sequences of a batch by itself, all steps of them, if it gets this many, and
// the weights are small enough to stay in its cache: the threads don't wait for each other in each
// step.
constexpr std::int64_t kOwnSequences = 4;
constexpr std::int64_t kCachedWeight = 1 << 18;  // elements

// A layer's weights as the products take them, and memory for the steps between two products of the
// input. `batch` and others are as in RnnSteps.
template <typename T>
class Steps {
 public:
  Steps(const RnnSteps<T>& layer, const float* packed_hidden, std::int64_t chunk)
      : layer_(layer),
        packed_hidden_(packed_hidden),
        gate_width_(GatesOf(layer.cell) * layer.size),
        gates_(static_cast<std::size_t>(chunk * layer.batch * gate_width_)),
        hidden_gates_(static_cast<std::size_t>(gru() ? layer.batch * gate_width_ : 0)),
        unprojected_(static_cast<std::size_t>(projected() ? layer.batch * layer.size : 0)) {}

  // [chunk, batch, gates * size]: the products of the input, before Run.
  T* gates() { return gates_.data(); }

  // `count` steps of all sequences, of which the earliest in the input is `first`. hidden: the
  // state before them, [batch, width]. Returns the state after them, rows of layer.output_row.
  const T* Run(std::int64_t first, std::int64_t count, const T* hidden, std::int64_t hidden_row) {
    const std::int64_t batch = layer_.batch;
    // Products with packed weights have the same results for any number of rows.
    const bool packed =
        packed_hidden_ != nullptr && (!projected() || layer_.packed_projection != nullptr);
    const bool own = packed && gate_width_ * layer_.width <= kCachedWeight &&
                     batch >= kOwnSequences * internal::MaxThreads();
    internal::ParallelFor(0, batch, own ? kOwnSequences : batch,
                          [&](std::int64_t begin, std::int64_t end) {
                            const T* before = hidden;
                            std::int64_t row = hidden_row;
                            for (std::int64_t i = 0; i < count; ++i) {
                              const std::int64_t at = layer_.reverse ? count - 1 - i : i;
                              before = Step(begin, end, first, at, before, row);
                              row = layer_.output_row;
                            }
                          });
    return layer_.output + (first + (layer_.reverse ? 0 : count - 1)) * batch * layer_.output_row;
  }

 private:
  bool gru() const { return layer_.cell == RnnCell::kGru; }
  bool projected() const { return layer_.size != layer_.width; }

  // A step of the sequences [begin, end); returns the state of all sequences after it.
  const T* Step(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t at,
                const T* hidden, std::int64_t hidden_row) {
    const std::int64_t size = layer_.size, width = layer_.width, count = end - begin;
    T* own = gates_.data() + at * layer_.batch * gate_width_;
    T* next = layer_.output + (first + at) * layer_.batch * layer_.output_row;
    // A GRU keeps the products of the hidden state apart, with their own bias.
    T* sums = gru() ? hidden_gates_.data() : own;
    Product<T>(count, gate_width_, width, hidden + begin * hidden_row, hidden_row,
               layer_.hidden_weight, packed_hidden_, sums + begin * gate_width_, gate_width_,
               gru() ? layer_.hidden_bias : sums + begin * gate_width_, gru() ? 0 : gate_width_);
    T* results = projected() ? unprojected_.data() : next;
    const std::int64_t results_row = projected() ? size : layer_.output_row;
    internal::ParallelFor(begin, end, 4096 / size + 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t b = from; b < to; ++b) {
        const T* input = own + b * gate_width_;
        T* result = results + b * results_row;
        if (gru()) {
          GruStep(input, sums + b * gate_width_, size, hidden + b * hidden_row, result);
        } else if (layer_.cell == RnnCell::kLstm) {
          LstmStep(input, size, layer_.cell_state + b * size, result);
        } else {
          PlainStep(input, size, layer_.cell == RnnCell::kRelu, result);
        }
      }
    });
    if (projected()) {
      Product<T>(count, width, size, unprojected_.data() + begin * size, size, layer_.projection,
                 layer_.packed_projection, next + begin * layer_.output_row, layer_.output_row,
                 nullptr, 0);
    }
    return next;
  }

  const RnnSteps<T>& layer_;
  const float* packed_hidden_;
  std::int64_t gate_width_;
  Scratch<T> gates_, hidden_gates_, unprojected_;
};

}  // namespace

template <typename T>
void RunRnn(const RnnSteps<T>& layer) {
  const std::int64_t batch = layer.batch, width = layer.width;
  const std::int64_t gate_width = GatesOf(layer.cell) * layer.size;
  const bool gru = layer.cell == RnnCell::kGru;

  // A GRU adds the hidden state's bias to the product that its reset gate multiplies.
  const std::int64_t summed = gru || layer.input_bias == nullptr ? 0 : gate_width;
  Scratch<T> sum(static_cast<std::size_t>(summed));
  for (std::int64_t i = 0; i < summed; ++i) sum[i] = layer.input_bias[i] + layer.hidden_bias[i];
  const T* bias = summed != 0 ? sum.data() : layer.input_bias;

  const PackedOnce input_panels(layer, layer.packed_input, gate_width, layer.features,
                                layer.input_weight);
  const PackedOnce hidden_panels(layer, layer.packed_hidden, gate_width, width,
                                 layer.hidden_weight);

  const std::int64_t row = std::max<std::int64_t>(1, batch * gate_width);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(kGateElements / row, 1, std::max<std::int64_t>(1, layer.steps));
  Steps<T> steps(layer, hidden_panels.data(), chunk);

  const T* hidden = layer.hidden;
  std::int64_t hidden_row = width;
  for (std::int64_t done = 0; done < layer.steps; done += chunk) {
    const std::int64_t count = std::min(chunk, layer.steps - done);
    const std::int64_t first = layer.reverse ? layer.steps - done - count : done;
    Product<T>(count * batch, gate_width, layer.features,
               layer.input + first * batch * layer.features, layer.features, layer.input_weight,
               input_panels.data(), steps.gates(), gate_width, bias, 0);
    hidden = steps.Run(first, count, hidden, hidden_row);
    hidden_row = layer.output_row;
  }
  if (layer.steps == 0) return;
  for (std::int64_t b = 0; b < batch; ++b) {
    std::copy_n(hidden + b * hidden_row, width, layer.hidden + b * width);
  }
}

template void RunRnn(const RnnSteps<float>&);
template void RunRnn(const RnnSteps<double>&);

}  // namespace aoti::slim
