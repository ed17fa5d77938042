// Operators that tests call: their arguments and results are of all kinds, and one of them throws.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using torch::stable::Tensor;

// Twice x, plus the bias if there is one; and the largest element of each row.
std::tuple<Tensor, Tensor> Scale(const Tensor& x, std::optional<Tensor> bias,
                                 std::vector<int64_t> dims, const std::string& mode, bool keep) {
  STD_TORCH_CHECK(x.size(0) != 3, "scale does not take 3 rows");
  STD_TORCH_CHECK(mode == "max", "mode is ", mode);
  Tensor out = torch::stable::clone(torch::stable::contiguous(x));
  float* values = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    values[i] *= 2;
    if (bias) values[i] += bias->const_data_ptr<float>()[i % x.size(1)];
  }
  return {out, torch::stable::amax(out, dims, keep)};
}

// Adds to x in place.
void Increment(Tensor x, int64_t by) {
  float* values = x.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) values[i] += static_cast<float>(by);
}

}  // namespace

STABLE_TORCH_LIBRARY(tested, m) {
  m.def("scale(Tensor x, Tensor? bias, int[] dims, str mode, bool keep=False) -> (Tensor, Tensor)");
  m.def("increment(Tensor(a!) x, SymInt by) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(tested, CPU, m) {
  m.impl("scale", TORCH_BOX(&Scale));
  m.impl("increment", TORCH_BOX(&Increment));
}
