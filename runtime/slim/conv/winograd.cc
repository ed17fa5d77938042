#include "runtime/slim/conv/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using internal::MaxThreads;
using internal::ParallelFor;

// With fewer channels, or fewer tiles, what comes before and after the products takes more time
// than they save.
constexpr std::int64_t kFewestChannels = 24;
constexpr std::int64_t kFewestTiles = 32;
// Widened inputs of all tiles, if they have no more floats than this, are computed once. Each block
// of channels reads them again, so they may also be no more than so many times the widened weights.
constexpr std::int64_t kMostInputs = 640 * 1024, kMostInputsOfWeights = 2;
// Otherwise: floats of widened inputs that a thread has at a time, and of weights that all have, in
// blocks, but at least one.
constexpr std::int64_t kInputFloats = 128 * 1024;
constexpr std::int64_t kWeightFloats = 512 * 1024;
// The least work for a thread, in multiplications.
constexpr std::int64_t kWinogradGrain = 1 << 18;
// The least number of floats for a thread to widen.
constexpr std::int64_t kWidenGrain = 1 << 15;

std::int64_t TilesOf(const ConvProblem& problem) {
  return problem.batch * problem.out[0] * CeilDiv(problem.out[1], 2) * CeilDiv(problem.out[2], 2);
}

// A job, and what belongs to it.
struct Plan {
  Plan(const ConvProblem& problem, const Image& image, const float* packed,
       const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4])
      : zeros(static_cast<std::size_t>(problem.in_channels)),
        weights(packed),
        narrow(problem.numbers == ConvNumbers::kNarrowWeights),
        tiles(TilesOf(problem)),
        blocks(CeilDiv(problem.out_channels, kConvBlock)),
        tile_floats(problem.kernel[0] * problem.in_channels),
        block_floats(kWinogradProducts * tile_floats * kConvBlock) {
    std::fill(zeros.begin(), zeros.end(), 0.0f);
    job.in = image.data;
    job.zeros = zeros.data();
    job.out = out;
    job.epilogue = epilogue;
    job.inner = problem.in_channels;
    job.channels = problem.out_channels;
    job.slices = problem.kernel[0];
    job.slice_step = problem.dilation[0];
    job.depth_step = problem.stride[0];
    job.grid[0] = problem.batch;
    for (int d = 0; d < 3; ++d) {
      job.in_sizes[d] = image.sizes[d];
      job.padding[d] = problem.padding[d];
      job.grid[d + 1] = problem.out[d];
    }
    for (int d = 0; d < 4; ++d) {
      job.in_strides[d] = image.strides[d];
      job.out_strides[d] = out_strides[d];
    }
  }

  // Widens a block of weights.
  void Widen(std::int64_t block, float* to) const {
    const std::int64_t size = 9 * tile_floats * kConvBlock;
    if (!narrow) return kernels.winograd_weights(job, weights + block * size, to);
    Scratch<float> floats(static_cast<std::size_t>(size));
    ConvWidenPairs(weights + block * size / 2, 9 * tile_floats / 2, floats.data());
    kernels.winograd_weights(job, floats.data(), to);
  }

  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  WinogradJob job = {};
  Scratch<float> zeros;
  const float* weights;
  bool narrow;  // they are pairs of bfloat16
  std::int64_t tiles, blocks;
  std::int64_t tile_floats;   // of a product of a tile's widened inputs
  std::int64_t block_floats;  // of widened weights
};

// First all inputs are widened, then each block of channels is computed for all tiles.
bool RunBlocks(const Plan& plan) {
  const std::int64_t inner = plan.tile_floats;
  const std::int64_t step = plan.tiles * inner;
  Scratch<float> inputs(static_cast<std::size_t>(kWinogradProducts * step));
  ParallelFor(0, plan.tiles, CeilDiv(kWidenGrain, kWinogradProducts * inner),
              [&](std::int64_t first, std::int64_t last) {
                plan.kernels.winograd_inputs(plan.job, first, last - first,
                                             inputs.data() + first * inner, step);
              });
  const std::int64_t some = 4 * plan.kernels.tile;
  std::atomic<bool> finite = true;
  ParallelFor(
      0, plan.blocks, CeilDiv(kWinogradGrain, plan.tiles * plan.block_floats),
      [&](std::int64_t first, std::int64_t last) {
        Scratch<float> weights(static_cast<std::size_t>(plan.block_floats));
        Scratch<float> sums(static_cast<std::size_t>(kWinogradProducts * some * kConvBlock));
        bool all_finite = true;
        for (std::int64_t b = first; b < last; ++b) {
          plan.Widen(b, weights.data());
          for (std::int64_t t = 0; t < plan.tiles; t += some) {
            all_finite &= plan.kernels.winograd_results(
                plan.job, t, std::min(some, plan.tiles - t), b, weights.data(),
                inputs.data() + t * inner, step, sums.data());
          }
        }
        if (!all_finite) finite = false;
      });
  return finite;
}

// Some blocks of weights are widened, then all tiles are computed for these, some at a time.
bool RunTiles(const Plan& plan) {
  const std::int64_t inner = plan.tile_floats;
  const std::int64_t tile = plan.kernels.tile;
  const std::int64_t together =
      std::clamp<std::int64_t>(kWeightFloats / plan.block_floats, 1, plan.blocks);
  std::int64_t most = std::max<std::int64_t>(kInputFloats / (kWinogradProducts * inner) / tile, 1);
  const std::int64_t steps = CeilDiv(plan.tiles, tile);
  if (MaxThreads() > 1) {
    most = std::min(most, std::max<std::int64_t>(CeilDiv(steps, 3 * MaxThreads()), 2));
  }
  const std::int64_t pieces = std::min(EvenPieces(CeilDiv(steps, most)), steps);
  const std::int64_t some = CeilDiv(steps, pieces) * tile;
  Scratch<float> wide(static_cast<std::size_t>(together * plan.block_floats));
  std::atomic<bool> finite = true;
  for (std::int64_t begin = 0; begin < plan.blocks; begin += together) {
    const std::int64_t count = std::min(together, plan.blocks - begin);
    ParallelFor(0, count, CeilDiv(kWidenGrain, plan.block_floats),
                [&](std::int64_t first, std::int64_t last) {
                  for (std::int64_t b = first; b < last; ++b) {
                    plan.Widen(begin + b, wide.data() + b * plan.block_floats);
                  }
                });
    const auto run = [&](std::int64_t first, std::int64_t last) {
      Scratch<float> inputs(static_cast<std::size_t>(kWinogradProducts * some * inner));
      Scratch<float> sums(static_cast<std::size_t>(kWinogradProducts * some * kConvBlock));
      bool all_finite = true;
      for (std::int64_t piece = first; piece < last; ++piece) {
        const std::int64_t t = steps * piece / pieces * tile;
        const std::int64_t now = std::min(steps * (piece + 1) / pieces * tile, plan.tiles) - t;
        plan.kernels.winograd_inputs(plan.job, t, now, inputs.data(), now * inner);
        for (std::int64_t b = 0; b < count; ++b) {
          all_finite &= plan.kernels.winograd_results(plan.job, t, now, begin + b,
                                                      wide.data() + b * plan.block_floats,
                                                      inputs.data(), now * inner, sums.data());
        }
      }
      if (!all_finite) finite = false;
    };
    ParallelFor(0, pieces, CeilDiv(kWinogradGrain, some * plan.block_floats * count), run);
  }
  return finite;
}

// Zeros before and behind a volume are multiplied, too. Whether that is less than what the
// algorithm saves.
bool FewSlicesOutside(const ConvProblem& problem) {
  std::int64_t inside = 0;
  for (std::int64_t d = 0; d < problem.out[0]; ++d) {
    for (std::int64_t k = 0; k < problem.kernel[0]; ++k) {
      const std::int64_t at = d * problem.stride[0] + k * problem.dilation[0] - problem.padding[0];
      inside += at >= 0 && at < problem.in[0];
    }
  }
  return 5 * inside >= 3 * problem.out[0] * problem.kernel[0];
}

}  // namespace

bool SuitsWinograd(const ConvProblem& problem) {
  if (problem.groups != 1 || problem.transposed) return false;
  if (problem.numbers == ConvNumbers::kPairs) return false;
  for (int d = 1; d < 3; ++d) {
    if (problem.kernel[d] != 3 || problem.stride[d] != 1 || problem.dilation[d] != 1) return false;
  }
  return std::min(problem.in_channels, problem.out_channels) >= kFewestChannels &&
         TilesOf(problem) >= kFewestTiles && FewSlicesOutside(problem);
}

bool RunWinograd(const ConvProblem& problem, const Image& image, const float* weights,
                 const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4]) {
  const Plan plan(problem, image, weights, epilogue, out, out_strides);
  const std::int64_t inputs = kWinogradProducts * plan.tiles * plan.tile_floats;
  const bool many_blocks = MaxThreads() == 1 || plan.blocks >= 2 * MaxThreads();
  const std::int64_t most =
      std::min(kMostInputs, kMostInputsOfWeights * plan.blocks * plan.block_floats);
  return inputs <= most && many_blocks ? RunBlocks(plan) : RunTiles(plan);
}

}  // namespace aoti::slim
