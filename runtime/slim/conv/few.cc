#include "runtime/slim/conv/few.h"

#include <algorithm>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

// For fewer pixels, turning the weights takes more time than it saves.
constexpr std::int64_t kFewestPixels = 64;
// To add up the lanes of a result and to write it takes about as long as so many products.
constexpr std::int64_t kFinish = 6;

}  // namespace

bool SuitsFewChannels(const ConvProblem& problem, const Phase& phase) {
  const ConvJob& job = phase.job();
  const std::int64_t lanes = AOTI_SLIM_CURRENT_KERNELS(kConv).lanes;
  if (problem.groups > 1 || job.channels > lanes || phase.pixels() < kFewestPixels ||
      job.numbers == ConvNumbers::kNarrowWeights) {
    return false;
  }
  // Vectors of products for a pixel: of inputs, and of channels.
  const std::int64_t few = (job.tap_count * CeilDiv(job.inner, lanes) + kFinish) * job.channels;
  return 4 * few < 3 * job.tap_count * job.inner;
}

void RunFewChannels(const Phase& phase) {
  const ConvJob& job = phase.job();
  Scratch<float> weights(static_cast<std::size_t>(job.channels * job.tap_count * job.inner));
  float* to = weights.data();
  for (std::int64_t channel = 0; channel < job.channels; ++channel) {
    for (std::int64_t t = 0; t < job.tap_count; ++t) {
      const float* from = job.weights + job.taps[t].weights + channel;
      for (std::int64_t k = 0; k < job.inner; ++k) *to++ = from[k * kConvBlock];
    }
  }
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  const std::int64_t tile = kernels.tile;
  const std::int64_t work = job.tap_count * job.inner * job.channels * tile;
  const std::int64_t pixels = phase.pixels();
  internal::ParallelFor(
      0, CeilDiv(pixels, tile), CeilDiv(kConvGrain, std::max<std::int64_t>(work, 1)),
      [&](std::int64_t first, std::int64_t last) {
        kernels.few_channels(job, weights.data(), first * tile, std::min(last * tile, pixels));
      });
}

}  // namespace aoti::slim
