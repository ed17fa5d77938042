// Sorts numbers into the buckets between a list of edges.

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aoti/custom_class.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

class Buckets {
 public:
  // outside: the bucket of what is not a number.
  Buckets(const Tensor& edges, int64_t outside) : outside_(outside) {
    STD_TORCH_CHECK(edges.dim() == 1 && edges.scalar_type() == ScalarType::Float,
                    "edges must be float32[n]");
    const float* first = edges.const_data_ptr<float>();
    edges_.assign(first, first + edges.numel());
    std::sort(edges_.begin(), edges_.end());
  }

  Tensor Find(const Tensor& x) const {
    STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float, "x must be float32");
    const Tensor in = torch::stable::contiguous(x);
    Tensor out = torch::stable::new_empty(in, in.sizes(), ScalarType::Long);
    const float* from = in.const_data_ptr<float>();
    int64_t* to = out.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < in.numel(); ++i) {
      const auto found = std::upper_bound(edges_.begin(), edges_.end(), from[i]);
      to[i] = std::isnan(from[i]) ? outside_ : found - edges_.begin();
    }
    return out;
  }

 private:
  std::vector<float> edges_;
  int64_t outside_;
};

}  // namespace

AOTI_CUSTOM_CLASS(example, Buckets) {
  c.init<Tensor, int64_t>("edges", "outside");
  c.def<&Buckets::Find>("find", "x");
}
