// silu(x @ gate) * (x @ up) for each row, without the two intermediate matrices in memory.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

Tensor Swiglu(const Tensor& x, const Tensor& gate, const Tensor& up, double limit) {
  STD_TORCH_CHECK(x.dim() == 2 && x.scalar_type() == ScalarType::Float,
                  "x must be float32[rows, k]");
  STD_TORCH_CHECK(limit > 0, "limit is ", limit, ", must be positive");
  const Tensor rows = torch::stable::contiguous(x);
  const Tensor g = torch::stable::contiguous(gate), u = torch::stable::contiguous(up);
  const int64_t n = rows.size(0), inner = rows.size(1), width = g.size(1);
  Tensor out = torch::stable::new_empty(rows, {n, width});
  const float* from = rows.const_data_ptr<float>();
  const float* gates = g.const_data_ptr<float>();
  const float* ups = u.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  torch::stable::parallel_for(0, n, 16, [&](int64_t first, int64_t last) {
    std::vector<float> a(static_cast<size_t>(width)), b(static_cast<size_t>(width));
    for (int64_t row = first; row < last; ++row) {
      std::fill(a.begin(), a.end(), 0.0F);
      std::fill(b.begin(), b.end(), 0.0F);
      for (int64_t k = 0; k < inner; ++k) {
        const float value = from[row * inner + k];
        for (int64_t j = 0; j < width; ++j) {
          a[j] += value * gates[k * width + j];
          b[j] += value * ups[k * width + j];
        }
      }
      for (int64_t j = 0; j < width; ++j) {
        const float gated = a[j] / (1.0F + std::exp(-a[j])) * b[j];
        to[row * width + j] = std::min(gated, static_cast<float>(limit));
      }
    }
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY(example, m) {
  m.def("swiglu(Tensor x, Tensor gate, Tensor up, float limit=1e9) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(example, CPU, m) { m.impl("swiglu", TORCH_BOX(&Swiglu)); }
