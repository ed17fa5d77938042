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

}  // namespace

template <typename T>
void RunRnn(const RnnSteps<T>& layer) {
  const std::int64_t batch = layer.batch, size = layer.size, width = layer.width;
  const std::int64_t gate_width = GatesOf(layer.cell) * size;
  const bool gru = layer.cell == RnnCell::kGru;
  const bool projected = size != width;

  // A GRU adds the hidden state's bias to the product that its reset gate multiplies.
  const std::int64_t summed = gru || layer.input_bias == nullptr ? 0 : gate_width;
  Scratch<T> sum(static_cast<std::size_t>(summed));
  for (std::int64_t i = 0; i < summed; ++i) sum[i] = layer.input_bias[i] + layer.hidden_bias[i];
  const T* bias = summed != 0 ? sum.data() : layer.input_bias;

  const PackedOnce input_panels(layer, layer.packed_input, gate_width, layer.features,
                                layer.input_weight);
  const PackedOnce hidden_panels(layer, layer.packed_hidden, gate_width, width,
                                 layer.hidden_weight);
  const float* packed_input = input_panels.data();
  const float* packed_hidden = hidden_panels.data();

  const std::int64_t row = std::max<std::int64_t>(1, batch * gate_width);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(kGateElements / row, 1, std::max<std::int64_t>(1, layer.steps));
  Scratch<T> gates(static_cast<std::size_t>(chunk * batch * gate_width));
  Scratch<T> hidden_gates(static_cast<std::size_t>(gru ? batch * gate_width : 0));
  Scratch<T> unprojected(static_cast<std::size_t>(projected ? batch * size : 0));
  const std::int64_t grain = 4096 / size + 1;

  const T* hidden = layer.hidden;
  std::int64_t hidden_row = width;
  for (std::int64_t done = 0; done < layer.steps; done += chunk) {
    const std::int64_t count = std::min(chunk, layer.steps - done);
    const std::int64_t first = layer.reverse ? layer.steps - done - count : done;
    Product<T>(count * batch, gate_width, layer.features,
               layer.input + first * batch * layer.features, layer.features, layer.input_weight,
               packed_input, gates.data(), gate_width, bias, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t local = layer.reverse ? count - 1 - i : i;
      T* own = gates.data() + local * batch * gate_width;
      T* next = layer.output + (first + local) * batch * layer.output_row;
      if (gru) {
        Product<T>(batch, gate_width, width, hidden, hidden_row, layer.hidden_weight, packed_hidden,
                   hidden_gates.data(), gate_width, layer.hidden_bias, 0);
      } else {
        Product<T>(batch, gate_width, width, hidden, hidden_row, layer.hidden_weight, packed_hidden,
                   own, gate_width, own, gate_width);
      }
      T* results = projected ? unprojected.data() : next;
      const std::int64_t results_row = projected ? size : layer.output_row;
      internal::ParallelFor(0, batch, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
          const T* input = own + b * gate_width;
          T* result = results + b * results_row;
          if (gru) {
            GruStep(input, hidden_gates.data() + b * gate_width, size, hidden + b * hidden_row,
                    result);
          } else if (layer.cell == RnnCell::kLstm) {
            LstmStep(input, size, layer.cell_state + b * size, result);
          } else {
            PlainStep(input, size, layer.cell == RnnCell::kRelu, result);
          }
        }
      });
      if (projected) {
        Product<T>(batch, width, size, unprojected.data(), size, layer.projection,
                   layer.packed_projection, next, layer.output_row, nullptr, 0);
      }
      hidden = next;
      hidden_row = layer.output_row;
    }
  }
  if (layer.steps == 0) return;
  for (std::int64_t b = 0; b < batch; ++b) {
    std::copy_n(hidden + b * hidden_row, width, layer.hidden + b * width);
  }
}

template void RunRnn(const RnnSteps<float>&);
template void RunRnn(const RnnSteps<double>&);

}  // namespace aoti::slim
