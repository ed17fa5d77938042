// An operator on at::Tensor, which only libtorch has.

#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor Squared(const at::Tensor& x) { return x * x; }

}  // namespace

TORCH_LIBRARY(on_tensor, m) { m.def("squared(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(on_tensor, CPU, m) { m.impl("squared", Squared); }
