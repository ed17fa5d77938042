// Another operator of the name of one in scale.cc: both can't be in one program.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

namespace {

torch::stable::Tensor Scale(const torch::stable::Tensor& x) { return torch::stable::clone(x); }

}  // namespace

STABLE_TORCH_LIBRARY(tested, m) { m.def("scale(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(tested, CPU, m) { m.impl("scale", TORCH_BOX(&Scale)); }
