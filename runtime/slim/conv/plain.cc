// Convolution for dtypes without a tuned kernel: float64 and integers.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"

namespace aoti::slim {
namespace {

// Integer sums wrap around without undefined behaviour.
template <typename T>
struct SumOf {
  using Type = std::uint64_t;
};
template <>
struct SumOf<double> {
  using Type = double;
};

// The input position that tap `k` of the filter reads for output position `out`; -1 if there is
// none.
std::int64_t InputAt(const ConvProblem& problem, int d, std::int64_t out, std::int64_t k) {
  std::int64_t at = 0;
  if (problem.transposed) {
    at = out + problem.padding[d] - k * problem.dilation[d];
    if (at < 0 || at % problem.stride[d] != 0) return -1;
    at /= problem.stride[d];
  } else {
    at = out * problem.stride[d] - problem.padding[d] + k * problem.dilation[d];
  }
  return at < problem.in[d] ? std::max<std::int64_t>(at, -1) : -1;
}

// The sum over all input channels and taps for one result.
template <typename T>
typename SumOf<T>::Type Sum(const ConvProblem& problem, const T* in,
                            const std::int64_t (&in_strides)[5], const T* weight,
                            std::int64_t weight_channel, const std::int64_t (&weight_strides)[5],
                            const std::int64_t (&out)[3]) {
  using Wide = typename SumOf<T>::Type;
  Wide sum = 0;
  for (std::int64_t kd = 0; kd < problem.kernel[0]; ++kd) {
    const std::int64_t d = InputAt(problem, 0, out[0], kd);
    if (d < 0) continue;
    for (std::int64_t kh = 0; kh < problem.kernel[1]; ++kh) {
      const std::int64_t h = InputAt(problem, 1, out[1], kh);
      if (h < 0) continue;
      for (std::int64_t kw = 0; kw < problem.kernel[2]; ++kw) {
        const std::int64_t w = InputAt(problem, 2, out[2], kw);
        if (w < 0) continue;
        const T* x = in + d * in_strides[2] + h * in_strides[3] + w * in_strides[4];
        const T* f =
            weight + kd * weight_strides[2] + kh * weight_strides[3] + kw * weight_strides[4];
        for (std::int64_t c = 0; c < problem.in_channels; ++c) {
          sum += static_cast<Wide>(x[c * in_strides[1]]) * static_cast<Wide>(f[c * weight_channel]);
        }
      }
    }
  }
  return sum;
}

}  // namespace

template <typename T>
void ConvPlain(const ConvProblem& problem, ConvArray<const T> in, ConvArray<const T> weight,
               const T* bias, ConvArray<T> out) {
  using Wide = typename SumOf<T>::Type;
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t rows = problem.batch * channels * problem.out[0] * problem.out[1];
  const std::int64_t work =
      std::max<std::int64_t>(problem.out[2] * problem.taps() * problem.in_channels, 1);
  internal::ParallelFor(0, rows, 65536 / work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t h = row % problem.out[1];
      const std::int64_t d = row / problem.out[1] % problem.out[0];
      const std::int64_t channel = row / problem.out[1] / problem.out[0] % channels;
      const std::int64_t n = row / problem.out[1] / problem.out[0] / channels;
      const std::int64_t group = channel / problem.out_channels;
      const std::int64_t filter = channel % problem.out_channels;
      const T* x = in.data + n * in.strides[0] + group * problem.in_channels * in.strides[1];
      const T* w =
          weight.data + (problem.transposed ? group * problem.in_channels * weight.strides[0] +
                                                  filter * weight.strides[1]
                                            : channel * weight.strides[0]);
      const std::int64_t weight_channel = weight.strides[problem.transposed ? 0 : 1];
      T* to = out.data + n * out.strides[0] + channel * out.strides[1] + d * out.strides[2] +
              h * out.strides[3];
      for (std::int64_t i = 0; i < problem.out[2]; ++i) {
        Wide sum = Sum(problem, x, in.strides, w, weight_channel, weight.strides, {d, h, i});
        if (bias != nullptr) sum += static_cast<Wide>(bias[channel]);
        to[i * out.strides[4]] = static_cast<T>(sum);
      }
    }
  });
}

#define AOTI_SLIM_CONV_PLAIN(T)                                                                    \
  template void ConvPlain<T>(const ConvProblem&, ConvArray<const T>, ConvArray<const T>, const T*, \
                             ConvArray<T>);
AOTI_SLIM_CONV_PLAIN(double)
AOTI_SLIM_CONV_PLAIN(std::uint8_t)
AOTI_SLIM_CONV_PLAIN(std::int8_t)
AOTI_SLIM_CONV_PLAIN(std::int16_t)
AOTI_SLIM_CONV_PLAIN(std::int32_t)
AOTI_SLIM_CONV_PLAIN(std::int64_t)
#undef AOTI_SLIM_CONV_PLAIN

}  // namespace aoti::slim
