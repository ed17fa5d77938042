// Plans convolutions of floats and pairs for the kernels: what to copy first, which taps contribute
// to each result, and how the work is split.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/depthwise.h"
#include "runtime/slim/conv/few.h"
#include "runtime/slim/conv/groups.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/conv/winograd.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using internal::MaxThreads;
using internal::ParallelFor;

// Floats that stay in half of the L2 cache while they are read repeatedly. CPUs with AMX have a
// larger one.
constexpr std::int64_t kCacheFloats = 64 * 1024, kAmxCacheFloats = 4 * kCacheFloats;
// With AMX, a thread computes about so many times as much.
constexpr std::int64_t kAmxSpeed = 8;
// The weights for few pixels, such as the means of a squeeze-and-excitation, are read from memory
// for these alone, which takes longer than the products.
constexpr std::int64_t kFewPixels = 2, kFewPixelsGrain = 1 << 15;
// With fewer channels, one tap is too little work for the kernel's inner loop.
constexpr std::int64_t kFewChannels = 16;

// Results with contiguous channels.
struct Results {
  float* floats;
  std::uint16_t* narrow;    // if not null: in place of `floats`
  std::int64_t strides[4];  // batch, depth, height, width
};

const ConvKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kConv); }

bool ReachesOutside(const ConvProblem& problem) {
  for (int d = 0; d < 3; ++d) {
    const std::int64_t last = (problem.out[d] - 1) * problem.stride[d] - problem.padding[d] +
                              (problem.kernel[d] - 1) * problem.dilation[d];
    if (problem.padding[d] > 0 || last >= problem.in[d]) return true;
  }
  return false;
}

// Lets the job write so many elements behind the place of `out` or `narrow`.
void WriteTo(float* out, std::uint16_t* narrow, std::int64_t elements, ConvJob& job) {
  job.out = out == nullptr ? nullptr : out + elements;
  job.narrow = narrow == nullptr ? nullptr : narrow + elements;
}

// Runs a phase of all groups. The work is split into tiles of pixels and blocks of channels, so
// that one factor of the product stays in the cache while the other is read.
void RunPhase(const ConvProblem& problem, const Phase& phase) {
  const ConvKernels& kernels = Kernels();
  const ConvJob& job = phase.job();
  const std::int64_t pixels = phase.pixels();
  if (pixels == 0) return;
  // AVX512_BF16 is slower than float32 on CPUs with AMX (docs/runtime.md).
  const bool amx = job.numbers == ConvNumbers::kPairs && CurrentCpuHasAmxBFloat16();
  if (!amx && SuitsFewChannels(problem, phase)) return RunFewChannels(phase);
  const std::int64_t cache = amx ? kAmxCacheFloats : kCacheFloats;
  const std::int64_t blocks = CeilDiv(problem.out_channels, kConvBlock);
  const std::int64_t block_work = job.tap_count * job.inner * kConvBlock;
  const std::int64_t step_blocks =
      std::clamp<std::int64_t>(cache / std::max<std::int64_t>(block_work, 1), 1, blocks);
  const std::int64_t block_steps = CeilDiv(blocks, step_blocks);
  // The groups of a pixel share cache lines and pages, so all of them read the same few tiles.
  const bool grouped = problem.groups > 1;
  const std::int64_t tile_floats = kernels.tile * problem.groups * problem.in_channels *
                                   job.steps[0] * job.steps[1] * job.steps[2];
  std::int64_t tile_steps =
      block_steps == 1 && !grouped ? 1 : CeilDiv(job.tiles * tile_floats, cache);
  tile_steps = std::max(tile_steps, CeilDiv(WantedPieces(), block_steps * problem.groups));
  if (problem.groups * block_steps % MaxThreads() != 0) tile_steps = EvenPieces(tile_steps);
  tile_steps = std::min(tile_steps, job.tiles);

  const std::int64_t items = problem.groups * tile_steps * block_steps;
  const std::int64_t work = pixels * block_work * blocks * problem.groups;
  const std::int64_t item_work = std::max<std::int64_t>(work / items, 1);
  const bool copies =
      !amx && phase.ReadsPixels() && job.steps[2] * job.in_strides[3] % kernels.crowded == 0;
  const std::int64_t few = pixels <= kFewPixels ? kFewPixelsGrain : kConvGrain;
  const std::int64_t grain = amx ? kAmxSpeed * kConvGrain : few;
  ParallelFor(0, items, CeilDiv(grain, item_work), [&](std::int64_t first, std::int64_t last) {
    ConvJob own = job;
    std::optional<Scratch<float>> rows;
    if (amx) rows.emplace(static_cast<std::size_t>(AmxRoomSize(job, kernels.tile)));
    if (copies) {
      rows.emplace(static_cast<std::size_t>(RowsSize(kernels.tile, job.inner)));
      own.rows = rows->data();
    }
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t block = i % block_steps * step_blocks;
      const std::int64_t group = i / block_steps % problem.groups;
      const std::int64_t tiles = i / block_steps / problem.groups;
      own.in = job.in + group * phase.group();
      WriteTo(job.out, job.narrow, group * problem.out_channels, own);
      own.epilogue = OfGroup(job.epilogue, group * problem.out_channels);
      own.weights = job.weights + group * blocks * job.block_stride;
      const std::int64_t tile = job.tiles * tiles / tile_steps;
      const std::int64_t tile_end = job.tiles * (tiles + 1) / tile_steps;
      const std::int64_t block_end = std::min(block + step_blocks, blocks);
      if (amx) {
        kernels.amx_tiles(own, tile, tile_end, block, block_end, rows->data());
      } else {
        kernels.tiles(own, tile, tile_end, block, block_end);
      }
    }
  });
}

void RunDepthwise(const ConvProblem& problem, const Image& image, const float* weights,
                  const ConvEpilogue& epilogue, const Results& out) {
  const DepthwiseJob job = MakeDepthwiseJob(problem, image.data, image.strides, weights, epilogue,
                                            out.floats, out.strides);
  const std::int64_t row_work =
      std::max<std::int64_t>(problem.out[2] * problem.taps() * job.group * job.channels, 1);
  // The kernel is bound by memory, not by multiplications.
  constexpr std::int64_t kDepthwiseGrain = kConvGrain / 4;
  ParallelFor(0, problem.batch * problem.out[0] * problem.out[1],
              CeilDiv(kDepthwiseGrain, row_work), [&](std::int64_t first, std::int64_t last) {
                RunDepthwiseRows(problem, job, first, last, out.narrow);
              });
}

void RunGrouped(const ConvProblem& problem, const Image& image, bool merge_width,
                const float* weights, const ConvEpilogue& epilogue, const Results& out) {
  std::optional<Scratch<float>> zeros;
  std::int64_t every[3];
  for (int d = 0; d < 3; ++d) {
    every[d] = problem.transposed ? std::min(problem.stride[d], problem.out[d]) : 1;
  }
  for (std::int64_t d = 0; d < every[0]; ++d) {
    for (std::int64_t h = 0; h < every[1]; ++h) {
      for (std::int64_t w = 0; w < every[2]; ++w) {
        Phase phase(problem, image, merge_width, {d, h, w}, epilogue, out.strides);
        ConvJob& job = phase.job();
        if (!zeros && phase.reaches_outside()) {
          zeros.emplace(static_cast<std::size_t>(job.inner));
          std::fill(zeros->begin(), zeros->end(), 0.0f);
        }
        job.zeros = zeros ? zeros->data() : nullptr;
        job.in = image.data;
        job.weights = weights;
        WriteTo(out.floats, out.narrow,
                d * out.strides[1] + h * out.strides[2] + w * out.strides[3], job);
        RunPhase(problem, phase);
      }
    }
  }
}

// Calls run(dense, at) for each pixel of the result: where it begins in an array without gaps, and
// in one with these strides (batch, depth, height, width).
template <typename Run>
void ForPixels(const ConvProblem& problem, const std::int64_t (&strides)[4], const Run& run) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t width = problem.out[2];
  ParallelFor(0, problem.batch * problem.out[0] * problem.out[1],
              CeilDiv(kCopyGrain, width * channels), [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t row = first; row < last; ++row) {
                  const std::int64_t offset = RowOffset(problem, row, strides);
                  for (std::int64_t w = 0; w < width; ++w) {
                    run((row * width + w) * channels, offset + w * strides[3]);
                  }
                }
              });
}

// Rounds the results, which lie without gaps.
void RoundOut(const ConvProblem& problem, const float* from, const Results& out) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  ForPixels(problem, out.strides, [&](std::int64_t dense, std::int64_t at) {
    Kernels().round(from + dense, channels, out.narrow + at);
  });
}

// A residual of bfloat16, or of fewer channels, as floats of all channels, for kernels that take no
// other.
void CopyResidual(const ConvProblem& problem, ConvEpilogue& epilogue,
                  std::optional<Scratch<float>>& copy) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  const Image image = ContiguousImage(nullptr, problem.out, channels, channels);
  copy.emplace(static_cast<std::size_t>(problem.batch * image.strides[0]));
  const std::int64_t own = std::min(epilogue.residual_channels, channels);
  ForPixels(problem, epilogue.residual_strides, [&](std::int64_t dense, std::int64_t at) {
    float* to = copy->data() + dense;
    if (epilogue.narrow_residual != nullptr) {
      Kernels().widen(epilogue.narrow_residual + at, channels, to);
    } else {
      std::fill(std::copy_n(epilogue.residual + at, own, to), to + channels, 0.0f);
    }
  });
  epilogue.residual = copy->data();
  epilogue.narrow_residual = nullptr;
  epilogue.residual_channels = channels;
  std::copy_n(image.strides, 4, epilogue.residual_strides);
}

// Copies the results, which lie without gaps, into the layout of `out`.
void CopyOut(const ConvProblem& problem, const float* from, const ConvResults& out) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t pixels = problem.out[0] * problem.out[1] * problem.out[2];
  const std::int64_t steps = CeilDiv(channels, 16);
  ParallelFor(0, problem.batch * steps, CeilDiv(kCopyGrain, pixels * 16),
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) {
                  const std::int64_t channel = i % steps * 16;
                  const std::int64_t n = i / steps;
                  Kernels().transpose(from + n * pixels * channels + channel, channels,
                                      out.floats + n * out.strides[0] + channel * out.strides[1],
                                      out.strides[1], pixels,
                                      std::min<std::int64_t>(channels - channel, 16));
                }
              });
}

}  // namespace

void ConvFloat(const ConvProblem& given, ConvArray<const float> in, ConvArray<const float> weight,
               const float* packed, const ConvEpilogue& given_epilogue, const ConvResults& out) {
  ConvEpilogue epilogue = given_epilogue;
  ConvProblem problem = given;
  const std::int64_t in_channels = problem.groups * problem.in_channels;
  const std::int64_t out_channels = problem.groups * problem.out_channels;

  const PackedFilter filter(problem, weight, packed);
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
    copied->Adjust(problem);
  }
  const bool merge_width = row_taps && image.strides[3] == in_channels && !ReachesOutside(problem);

  const bool winograd = !apart && !problem.depthwise() && SuitsWinograd(problem);
  std::optional<Scratch<float>> own_out;
  Results results = {
      out.floats, out.narrow, {out.strides[0], out.strides[2], out.strides[3], out.strides[4]}};
  const Results rounded = results;
  const bool round_out = out.narrow != nullptr && (apart || winograd);
  const bool copy_out = out.floats != nullptr && out.strides[1] != 1 && out_channels > 1;
  std::optional<Scratch<float>> own_residual;
  const bool is_tiled = !apart && !winograd && !problem.depthwise();
  const bool lacks_channels = epilogue.residual_channels < out_channels;
  if ((epilogue.narrow_residual != nullptr && !is_tiled) ||
      (lacks_channels && !(is_tiled && problem.groups == 1))) {
    CopyResidual(problem, epilogue, own_residual);
  }
  if (copy_out || round_out) {
    const Image dense = ContiguousImage(nullptr, problem.out, out_channels, out_channels);
    own_out.emplace(static_cast<std::size_t>(problem.batch * dense.strides[0]));
    results = {own_out->data(), nullptr, {}};
    std::copy_n(dense.strides, 4, results.strides);
  }
  if (apart) {
    RunGroupsApart(problem, in, filter.data(), epilogue, results.floats, results.strides);
  } else if (problem.depthwise()) {
    RunDepthwise(problem, image, filter.data(), epilogue, results);
  } else if (!winograd || !RunWinograd(problem, image, filter.data(), epilogue, results.floats,
                                       results.strides)) {
    RunGrouped(problem, image, merge_width, filter.data(), epilogue, results);
  }
  if (copy_out) CopyOut(problem, results.floats, out);
  if (round_out) RoundOut(problem, results.floats, rounded);
}

}  // namespace aoti::slim
