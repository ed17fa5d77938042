// Plans convolutions of float32 for the kernels: what to copy first, which taps contribute to each
// result, and how the work is split.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/depthwise.h"
#include "runtime/slim/conv/groups.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/conv/winograd.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using internal::ParallelFor;

// Floats that stay in half of the L2 cache while they are read repeatedly.
constexpr std::int64_t kCacheFloats = 64 * 1024;
// With fewer channels, one tap is too little work for the kernel's inner loop.
constexpr std::int64_t kFewChannels = 16;

const ConvKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kConv); }

bool ReachesOutside(const ConvProblem& problem) {
  for (int d = 0; d < 3; ++d) {
    const std::int64_t last = (problem.out[d] - 1) * problem.stride[d] - problem.padding[d] +
                              (problem.kernel[d] - 1) * problem.dilation[d];
    if (problem.padding[d] > 0 || last >= problem.in[d]) return true;
  }
  return false;
}

// Runs a phase of all groups. The work is split into tiles of pixels and blocks of channels, so
// that one factor of the product stays in the cache while the other is read.
void RunPhase(const ConvProblem& problem, const Phase& phase) {
  const ConvKernels& kernels = Kernels();
  const ConvJob& job = phase.job();
  const std::int64_t pixels = phase.pixels();
  if (pixels == 0) return;
  const std::int64_t blocks = CeilDiv(problem.out_channels, kConvBlock);
  const std::int64_t block_work = job.tap_count * job.inner * kConvBlock;
  const std::int64_t step_blocks =
      std::clamp<std::int64_t>(kCacheFloats / std::max<std::int64_t>(block_work, 1), 1, blocks);
  const std::int64_t block_steps = CeilDiv(blocks, step_blocks);
  // The groups of a pixel share cache lines and pages, so all of them read the same few tiles.
  const bool grouped = problem.groups > 1;
  const std::int64_t tile_floats = kernels.tile * problem.groups * problem.in_channels *
                                   job.steps[0] * job.steps[1] * job.steps[2];
  std::int64_t tile_steps =
      block_steps == 1 && !grouped ? 1 : CeilDiv(job.tiles * tile_floats, kCacheFloats);
  tile_steps = std::max(tile_steps, CeilDiv(WantedPieces(), block_steps * problem.groups));
  tile_steps = std::min(tile_steps, job.tiles);

  const std::int64_t items = problem.groups * tile_steps * block_steps;
  const std::int64_t work = pixels * block_work * blocks * problem.groups;
  const std::int64_t item_work = std::max<std::int64_t>(work / items, 1);
  const bool copies =
      phase.ReadsPixels() && job.steps[2] * job.in_strides[3] % kernels.crowded == 0;
  ParallelFor(0, items, CeilDiv(kConvGrain, item_work), [&](std::int64_t first, std::int64_t last) {
    ConvJob own = job;
    std::optional<Scratch<float>> rows;
    if (copies) {
      rows.emplace(static_cast<std::size_t>(RowsSize(kernels.tile, job.inner)));
      own.rows = rows->data();
    }
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t block = i % block_steps * step_blocks;
      const std::int64_t group = i / block_steps % problem.groups;
      const std::int64_t tiles = i / block_steps / problem.groups;
      own.in = job.in + group * phase.group();
      own.out = job.out + group * problem.out_channels;
      own.epilogue = OfGroup(job.epilogue, group * problem.out_channels);
      own.weights = job.weights + group * blocks * job.block_stride;
      kernels.tiles(own, job.tiles * tiles / tile_steps, job.tiles * (tiles + 1) / tile_steps,
                    block, std::min(block + step_blocks, blocks));
    }
  });
}

void RunDepthwise(const ConvProblem& problem, const Image& image, const float* weights,
                  const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4]) {
  const DepthwiseJob job =
      MakeDepthwiseJob(problem, image.data, image.strides, weights, epilogue, out, out_strides);
  const std::int64_t row_work =
      std::max<std::int64_t>(problem.out[2] * problem.taps() * job.group * job.channels, 1);
  // The kernel is bound by memory, not by multiplications.
  constexpr std::int64_t kDepthwiseGrain = kConvGrain / 4;
  ParallelFor(
      0, problem.batch * problem.out[0] * problem.out[1], CeilDiv(kDepthwiseGrain, row_work),
      [&](std::int64_t first, std::int64_t last) { Kernels().depthwise(job, first, last); });
}

void RunGrouped(const ConvProblem& problem, const Image& image, bool merge_width,
                const float* weights, const ConvEpilogue& epilogue, float* out,
                const std::int64_t (&out_strides)[4]) {
  std::optional<Scratch<float>> zeros;
  std::int64_t every[3];
  for (int d = 0; d < 3; ++d) {
    every[d] = problem.transposed ? std::min(problem.stride[d], problem.out[d]) : 1;
  }
  for (std::int64_t d = 0; d < every[0]; ++d) {
    for (std::int64_t h = 0; h < every[1]; ++h) {
      for (std::int64_t w = 0; w < every[2]; ++w) {
        Phase phase(problem, image, merge_width, {d, h, w}, epilogue, out_strides);
        ConvJob& job = phase.job();
        if (!zeros && phase.reaches_outside()) {
          zeros.emplace(static_cast<std::size_t>(job.inner));
          std::fill(zeros->begin(), zeros->end(), 0.0f);
        }
        job.zeros = zeros ? zeros->data() : nullptr;
        job.in = image.data;
        job.weights = weights;
        job.out = out + d * out_strides[1] + h * out_strides[2] + w * out_strides[3];
        RunPhase(problem, phase);
      }
    }
  }
}

// Copies the results, which were computed with contiguous channels, into the layout of `out`.
void CopyOut(const ConvProblem& problem, const float* from, ConvArray<float> out) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t pixels = problem.out[0] * problem.out[1] * problem.out[2];
  const std::int64_t steps = CeilDiv(channels, 16);
  ParallelFor(0, problem.batch * steps, CeilDiv(kCopyGrain, pixels * 16),
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) {
                  const std::int64_t channel = i % steps * 16;
                  const std::int64_t n = i / steps;
                  Kernels().transpose(from + n * pixels * channels + channel, channels,
                                      out.data + n * out.strides[0] + channel * out.strides[1],
                                      out.strides[1], pixels,
                                      std::min<std::int64_t>(channels - channel, 16));
                }
              });
}

}  // namespace

void ConvFloat(const ConvProblem& given, ConvArray<const float> in, ConvArray<const float> weight,
               const float* packed, const ConvEpilogue& epilogue, ConvArray<float> out) {
  ConvProblem problem = given;
  const std::int64_t in_channels = problem.groups * problem.in_channels;
  const std::int64_t out_channels = problem.groups * problem.out_channels;

  std::optional<Scratch<float>> own_weights;
  if (packed == nullptr) {
    own_weights.emplace(static_cast<std::size_t>(ConvPackedSize(problem)));
    ConvPack(problem, weight, own_weights->data());
    packed = own_weights->data();
  }

  const bool apart = SuitsGroupsApart(problem);
  // A row of the filter is one long tap if its pixels are contiguous in the image.
  const bool row_taps = problem.groups == 1 && !problem.transposed && problem.dilation[2] == 1;
  const bool copy = !apart && in.strides[1] != 1 && in_channels > 1;
  const bool pad = row_taps && problem.kernel[2] > 1 && ReachesOutside(problem) &&
                   (copy || in_channels < kFewChannels);
  std::optional<ImageCopy> copied;
  Image image = {in.data,
                 {problem.in[0], problem.in[1], problem.in[2]},
                 {in.strides[0], in.strides[2], in.strides[3], in.strides[4]},
                 problem.in_channels};
  if (copy || pad) {
    copied.emplace(problem, in, pad);
    image = copied->image();
    for (int d = 0; d < 3 && pad; ++d) {
      problem.padding[d] = 0;
      problem.in[d] = image.sizes[d];
    }
  }
  const bool merge_width = row_taps && image.strides[3] == in_channels && !ReachesOutside(problem);

  std::optional<Scratch<float>> own_out;
  float* results = out.data;
  std::int64_t strides[4] = {out.strides[0], out.strides[2], out.strides[3], out.strides[4]};
  const bool copy_out = out.strides[1] != 1 && out_channels > 1;
  if (copy_out) {
    const std::int64_t row = problem.out[2] * out_channels;
    const std::int64_t plane = problem.out[1] * row;
    own_out.emplace(static_cast<std::size_t>(problem.batch * problem.out[0] * plane));
    results = own_out->data();
    const std::int64_t own[4] = {problem.out[0] * plane, plane, row, out_channels};
    std::copy_n(own, 4, strides);
  }
  if (apart) {
    RunGroupsApart(problem, in, packed, epilogue, results, strides);
  } else if (problem.depthwise()) {
    RunDepthwise(problem, image, packed, epilogue, results, strides);
  } else if (!SuitsWinograd(problem) ||
             !RunWinograd(problem, image, packed, epilogue, results, strides)) {
    RunGrouped(problem, image, merge_width, packed, epilogue, results, strides);
  }
  if (copy_out) CopyOut(problem, results, out);
}

}  // namespace aoti::slim
