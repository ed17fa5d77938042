#include "runtime/slim/conv/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using internal::MaxThreads;
using internal::ParallelFor;

// With fewer channels, or fewer tiles in an image, what comes before and after the products takes
// more time than they save.
constexpr std::int64_t kFewestChannels = 24;
constexpr std::int64_t kFewestTiles = 16;
// Floats of widened weights that exist at a time: in blocks, but at least one.
constexpr std::int64_t kWeightFloats = 512 * 1024;
// Floats of widened inputs that a thread has at a time.
constexpr std::int64_t kInputFloats = 128 * 1024;
// The least work for a thread, in multiplications.
constexpr std::int64_t kWinogradGrain = 1 << 18;

std::int64_t TilesOf(const ConvProblem& problem) {
  return CeilDiv(problem.out[1], 2) * CeilDiv(problem.out[2], 2);
}

}  // namespace

bool SuitsWinograd(const ConvProblem& problem) {
  if (problem.groups != 1 || problem.transposed || problem.kernel[0] != 1 || problem.out[0] != 1 ||
      problem.in[0] != 1) {
    return false;
  }
  for (int d = 1; d < 3; ++d) {
    if (problem.kernel[d] != 3 || problem.stride[d] != 1 || problem.dilation[d] != 1) return false;
  }
  return std::min(problem.in_channels, problem.out_channels) >= kFewestChannels &&
         TilesOf(problem) >= kFewestTiles;
}

bool RunWinograd(const ConvProblem& problem, const Image& image, const float* weights,
                 const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4]) {
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  const std::int64_t inner = problem.in_channels;
  Scratch<float> zeros(static_cast<std::size_t>(inner));
  std::fill(zeros.begin(), zeros.end(), 0.0f);
  WinogradJob job = {};
  job.in = image.data;
  job.zeros = zeros.data();
  job.out = out;
  job.epilogue = epilogue;
  job.inner = inner;
  job.channels = problem.out_channels;
  job.in_strides[0] = image.strides[0];
  job.out_strides[0] = out_strides[0];
  job.grid[0] = problem.batch;
  for (int d = 0; d < 2; ++d) {
    job.in_sizes[d] = image.sizes[d + 1];
    job.padding[d] = problem.padding[d + 1];
    job.in_strides[d + 1] = image.strides[d + 2];
    job.out_strides[d + 1] = out_strides[d + 2];
    job.grid[d + 1] = problem.out[d + 1];
  }

  const std::int64_t tiles = problem.batch * TilesOf(problem);
  const std::int64_t blocks = CeilDiv(problem.out_channels, kConvBlock);
  const std::int64_t block_floats = kWinogradProducts * inner * kConvBlock;
  const std::int64_t together =
      std::clamp<std::int64_t>(kWeightFloats / block_floats, 1, blocks);
  // A number of tiles that is a multiple of what the products take at a time.
  std::int64_t step = std::max<std::int64_t>(
      kInputFloats / (kWinogradProducts * inner) / kernels.tile, 1);
  const std::int64_t most = CeilDiv(CeilDiv(tiles, kernels.tile), 4 * MaxThreads());
  if (MaxThreads() > 1) step = std::min(step, most);
  step *= kernels.tile;
  Scratch<float> wide(static_cast<std::size_t>(together * block_floats));
  std::atomic<bool> finite = true;
  for (std::int64_t begin = 0; begin < blocks; begin += together) {
    const std::int64_t count = std::min(together, blocks - begin);
    ParallelFor(0, count, CeilDiv(kWinogradGrain, block_floats), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        kernels.winograd_weights(weights + (begin + b) * 9 * inner * kConvBlock, inner,
                                 wide.data() + b * block_floats);
      }
    });
    const std::int64_t item_work = step * block_floats * count;
    ParallelFor(0, CeilDiv(tiles, step), CeilDiv(kWinogradGrain, item_work),
                [&](std::int64_t first, std::int64_t last) {
                  Scratch<float> inputs(static_cast<std::size_t>(kWinogradProducts * step * inner));
                  Scratch<float> sums(
                      static_cast<std::size_t>(kWinogradProducts * step * kConvBlock));
                  bool all_finite = true;
                  for (std::int64_t i = first; i < last; ++i) {
                    const std::int64_t some = std::min(step, tiles - i * step);
                    kernels.winograd_inputs(job, i * step, some, inputs.data());
                    for (std::int64_t b = 0; b < count; ++b) {
                      all_finite &= kernels.winograd_results(
                          job, i * step, some, begin + b, wide.data() + b * block_floats,
                          inputs.data(), sums.data());
                    }
                  }
                  if (!all_finite) finite = false;
                });
  }
  return finite;
}

}  // namespace aoti::slim
