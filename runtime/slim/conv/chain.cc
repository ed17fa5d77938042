// Chains of convolutions row by row: what a stage reads of the one before is still in the L2 cache.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/depthwise.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

// Floats of the first result that are kept, at least a filter's rows.
constexpr std::int64_t kRowFloats = 128 * 1024;
// A first result of fewer floats stays in the L2 cache as a whole.
constexpr std::int64_t kStays = 256 * 1024;
// Weights of a stage with more floats would be read from further away for each few rows.
constexpr std::int64_t kMostWeights = 128 * 1024;
// The least work for a thread, in multiplications.
constexpr std::int64_t kChainGrain = 1 << 18;

std::int64_t Floats(const ConvProblem& problem) {
  return problem.groups * problem.out_channels * problem.out[1] * problem.out[2];
}

// Where rows of results go: one of the pointers is null.
struct RowsOut {
  float* floats;
  std::uint16_t* narrow;
  std::int64_t row, pixel;  // steps
};

// The products of `count` pixels that follow each other.
void RunPixels(const ConvStage& stage, const float* in, std::int64_t in_step, const RowsOut& out,
               std::int64_t count, const ConvEpilogue& epilogue) {
  static constexpr ConvTap kTap = {{0, 0, 0}, 0};
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  const ConvProblem& problem = stage.problem;
  ConvJob job = {};
  job.numbers = problem.numbers;
  job.in = in;
  job.out = out.floats;
  job.narrow = out.narrow;
  job.weights = stage.packed;
  job.epilogue = epilogue;
  job.taps = &kTap;
  job.tap_count = 1;
  job.inner = problem.in_channels;
  job.channels = problem.out_channels;
  job.block_stride = problem.in_channels * kConvBlock;
  std::fill_n(job.in_sizes, 3, INT64_MAX);
  std::fill_n(job.steps, 3, 1);
  std::fill_n(job.grid, 3, 1);
  job.grid[3] = count;
  job.in_strides[3] = in_step;
  job.out_strides[3] = out.pixel;
  job.tiles = CeilDiv(count, kernels.tile);
  const std::int64_t blocks = CeilDiv(problem.out_channels, kConvBlock);
  if (job.numbers == ConvNumbers::kPairs && CurrentCpuHasAmxBFloat16()) {
    Scratch<float> room(static_cast<std::size_t>(AmxRoomSize(job, kernels.tile)));
    return kernels.amx_tiles(job, 0, job.tiles, 0, blocks, room.data());
  }
  kernels.tiles(job, 0, job.tiles, 0, blocks);
}

// Computes rows of the last stage; the rows of the first one that the next rows read again are
// kept.
class Rows {
 public:
  Rows(const ConvStage* stages, int count, ConvArray<const float> in, const ConvResults& out)
      : stages_(stages), count_(count), in_(in), out_(out) {
    const ConvProblem& filter = stages[1].problem;
    reach_ = (filter.kernel[1] - 1) * filter.dilation[1] + 1;
    row_ = filter.in[2] * filter.groups * filter.in_channels;
    const std::int64_t most = std::max(kRowFloats / std::max<std::int64_t>(row_, 1), reach_);
    step_ = std::min((most - reach_) / filter.stride[1] + 1, filter.out[1]);
    const std::int64_t rows = (step_ - 1) * filter.stride[1] + reach_;
    first_.emplace(static_cast<std::size_t>(rows * row_));
    out_row_ = filter.out[2] * filter.groups * filter.out_channels;
    if (count == 2) return;
    const auto some = static_cast<std::size_t>(step_ * out_row_);
    if (stages[2].problem.numbers == ConvNumbers::kPairs) {
      narrow_.emplace(some);
    } else {
      second_.emplace(some);
    }
  }

  void Run(std::int64_t first, std::int64_t last) {
    const std::int64_t height = stages_[1].problem.out[1];
    while (first < last) {
      const std::int64_t h = first % height;
      const std::int64_t count = std::min({step_, height - h, last - first});
      RunSome(first / height, h, count);
      first += count;
    }
  }

 private:
  void RunSome(std::int64_t n, std::int64_t h, std::int64_t count) {
    const ConvProblem& filter = stages_[1].problem;
    const std::int64_t top = h * filter.stride[1] - filter.padding[1];
    const std::int64_t bottom = top + (count - 1) * filter.stride[1] + reach_;
    Provide(n, std::clamp<std::int64_t>(top, 0, filter.in[1]),
            std::clamp<std::int64_t>(bottom, 0, filter.in[1]));

    // The rows are an image of their own, with less padding.
    ConvProblem some = filter;
    some.batch = 1;
    some.in[1] = last_ - begin_;
    some.out[1] = count;
    some.padding[1] = begin_ - top;

    ConvEpilogue last = stages_[count_ - 1].epilogue;
    MoveResidual(last, n * last.residual_strides[0] + h * last.residual_strides[2]);
    const std::int64_t at = n * out_.strides[0] + h * out_.strides[3];
    const RowsOut out = {out_.floats == nullptr ? nullptr : out_.floats + at,
                         out_.narrow == nullptr ? nullptr : out_.narrow + at, out_.strides[3],
                         out_.strides[4]};
    if (count_ == 2) return Filter(some, last, out);
    const std::int64_t channels = filter.groups * filter.out_channels;
    const std::int64_t pixels = count * filter.out[2];
    if (narrow_) {
      Filter(some, stages_[1].epilogue, {nullptr, narrow_->data(), out_row_, channels});
      // Kernels of pairs read them as numbers of 32 bits.
      const void* pairs = narrow_->data();
      return RunPixels(stages_[2], static_cast<const float*>(pairs), channels / 2, out, pixels,
                       last);
    }
    Filter(some, stages_[1].epilogue, {second_->data(), nullptr, out_row_, channels});
    RunPixels(stages_[2], second_->data(), channels, out, pixels, last);
  }

  // Computes rows of the second stage from the first one's.
  void Filter(const ConvProblem& some, const ConvEpilogue& epilogue, const RowsOut& out) {
    const std::int64_t in_strides[4] = {0, 0, row_, some.groups * some.in_channels};
    const std::int64_t out_strides[4] = {0, 0, out.row, out.pixel};
    const DepthwiseJob job = MakeDepthwiseJob(some, first_->data(), in_strides, stages_[1].packed,
                                              epilogue, out.floats, out_strides);
    RunDepthwiseRows(some, job, 0, some.out[1], out.narrow);
  }

  // Makes the rows begin..last of the image's first result available.
  void Provide(std::int64_t n, std::int64_t begin, std::int64_t last) {
    if (n != image_) {
      image_ = n;
      begin_ = last_ = begin;
    }
    const std::int64_t kept = std::max<std::int64_t>(last_ - begin, 0);
    float* rows = first_->data();
    if (kept > 0 && begin > begin_) {
      std::memmove(rows, rows + (begin - begin_) * row_,
                   static_cast<std::size_t>(kept * row_) * sizeof(float));
    }
    begin_ = begin;
    const std::int64_t from = begin + kept;
    last_ = std::max(last, from);
    if (last_ == from) return;
    const ConvProblem& filter = stages_[1].problem;
    RunPixels(stages_[0], in_.data + n * in_.strides[0] + from * in_.strides[3], in_.strides[4],
              {rows + kept * row_, nullptr, row_, filter.groups * filter.in_channels},
              (last_ - from) * filter.in[2], stages_[0].epilogue);
  }

  const ConvStage* stages_;
  int count_;
  ConvArray<const float> in_;
  ConvResults out_;
  std::int64_t reach_;          // rows of a filter
  std::int64_t row_, out_row_;  // floats in a row of the first result, and of the second
  std::int64_t step_;           // rows of the second result that are computed at once
  // Rows of the first result, and of the second one, as floats or rounded, if it is not the last.
  std::optional<Scratch<float>> first_, second_;
  std::optional<Scratch<std::uint16_t>> narrow_;
  // The rows of an image that are in first_.
  std::int64_t image_ = -1, begin_ = 0, last_ = 0;
};

bool IsOfPixels(const ConvProblem& problem) {
  for (int d = 0; d < 3; ++d) {
    if (problem.kernel[d] != 1 || problem.stride[d] != 1) return false;
    if (problem.padding[d] != 0 || problem.in[d] != problem.out[d]) return false;
  }
  return problem.groups == 1 && !problem.transposed;
}

// Whether channels are contiguous, and the pixels of an image at equal distances. strides: as those
// of a ConvArray.
bool IsEven(const std::int64_t (&strides)[5], std::int64_t width) {
  return strides[1] == 1 && strides[3] == strides[4] * width;
}

// Whether rows are computed through all stages: if they can be, and if it saves much reading.
bool ByRows(const ConvStage* stages, int count, const ConvArray<const float>& in,
            const ConvResults& out) {
  const ConvProblem& filter = stages[1].problem;
  const ConvProblem& last = stages[count - 1].problem;
  const ConvEpilogue& epilogue = stages[count - 1].epilogue;
  if (HasResidual(epilogue) &&
      epilogue.residual_strides[2] != epilogue.residual_strides[3] * last.out[2]) {
    return false;
  }
  if (!IsOfPixels(stages[0].problem) || !filter.depthwise() || filter.in[0] != 1) return false;
  if (count == 3 ? !IsOfPixels(last) : epilogue.narrow_residual != nullptr) return false;
  for (int i = 0; i < count; ++i) {
    const ConvProblem& problem = stages[i].problem;
    if (problem.in_channels * problem.out_channels > kMostWeights) return false;
  }
  return filter.batch * Floats(stages[0].problem) > kStays && IsEven(in.strides, filter.in[2]) &&
         IsEven(out.strides, last.out[2]);
}

}  // namespace

bool ConvChain(const ConvStage* given, int count, ConvArray<const float> in,
               const ConvResults& out) {
  if (!ByRows(given, count, in, out)) return false;
  std::optional<PackedFilter> filters[kMostStages];
  ConvStage stages[kMostStages];
  for (int i = 0; i < count; ++i) {
    stages[i] = given[i];
    filters[i].emplace(given[i].problem, given[i].weight, given[i].packed);
    stages[i].packed = filters[i]->data();
  }
  const ConvProblem& filter = stages[1].problem;
  std::int64_t row_work = 1;
  for (int i = 0; i < count; ++i) {
    const ConvProblem& problem = stages[i].problem;
    row_work += problem.out[2] * problem.taps() * problem.in_channels * problem.out_channels *
                problem.groups;
  }
  internal::ParallelFor(0, filter.batch * filter.out[1], CeilDiv(kChainGrain, row_work),
                        [&](std::int64_t first, std::int64_t last) {
                          Rows(stages, count, in, out).Run(first, last);
                        });
  return true;
}

}  // namespace aoti::slim
