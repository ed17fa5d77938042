// Root mean square norm, in one pass.

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

struct RmsNormResults {
  TensorPtr output, scale;
};

RmsNormResults RmsNorm(const Tensor& input, Ints normalized, const Tensor* weight,
                       const double* eps) {
  const Ints sizes = input.sizes();
  Require(!normalized.empty() && normalized.size() <= sizes.size() &&
              std::ranges::equal(normalized, sizes.last(normalized.size())),
          "rms_norm: the normalized shape must be the input's last dims");
  Require(weight == nullptr || std::ranges::equal(weight->sizes(), normalized),
          "rms_norm: the weight must have the normalized shape");
  const std::int64_t size = NumElements(normalized);
  const std::size_t batch_dims = sizes.size() - normalized.size();
  const std::int64_t rows = NumElements(sizes.first(batch_dims));

  Scratch<std::int64_t> scale_sizes(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) scale_sizes[d] = d < batch_dims ? sizes[d] : 1;
  RmsNormResults results;
  DispatchFloating(input.dtype(), [&]<typename T>() {
    using Wide = Accumulator<T>;
    const ScalarType wide =
        std::is_same_v<Wide, double> ? ScalarType::kFloat64 : ScalarType::kFloat32;
    results.output = Empty(input.dtype(), sizes);
    results.scale = Empty(wide, Ints(scale_sizes.data(), scale_sizes.size()));
    const TensorPtr from = Contiguous(input);
    const TensorPtr factors = weight == nullptr ? nullptr : Converted(*weight, wide);
    const Wide small =
        eps == nullptr ? std::numeric_limits<Wide>::epsilon() : static_cast<Wide>(*eps);
    const std::int64_t grain = 16384 / std::max<std::int64_t>(size, 1) + 1;
    internal::ParallelFor(0, rows, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const T* in = from->data<T>() + row * size;
        T* out = results.output->data<T>() + row * size;
        Wide sum = 0;
        for (std::int64_t i = 0; i < size; ++i) sum += Wide(in[i]) * Wide(in[i]);
        const Wide scale = 1 / std::sqrt(sum / static_cast<Wide>(size) + small);
        results.scale->data<Wide>()[row] = scale;
        for (std::int64_t i = 0; i < size; ++i) {
          const Wide factor = factors == nullptr ? Wide{1} : factors->data<Wide>()[i];
          out[i] = static_cast<T>(Wide(in[i]) * scale * factor);
        }
      }
    });
  });
  return results;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu__fused_rms_norm(AtenTensorHandle input,
                                              const int64_t* normalized_shape,
                                              int64_t normalized_shape_len_,
                                              AtenTensorHandle* weight, double* eps,
                                              AtenTensorHandle* ret0, AtenTensorHandle* ret1) {
  return Guarded([&] {
    RmsNormResults results =
        RmsNorm(*input, Ints(normalized_shape, static_cast<std::size_t>(normalized_shape_len_)),
                weight == nullptr ? nullptr : *weight, eps);
    *ret0 = results.output.release();
    *ret1 = results.scale.release();
  });
}

}  // extern "C"
