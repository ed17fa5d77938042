// Chains of convolutions row by row: what a stage reads of the one before is still in the L2 cache.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/depthwise.h"
#include "runtime/slim/conv/pack.h"
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

// The strides of an array of images without gaps, channels last.
ConvArray<float> Dense(const ConvProblem& problem, float* data) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  return {data, {Floats(problem), 1, 0, problem.out[2] * channels, channels}};
}

ConvArray<const float> Read(const ConvArray<float>& array) {
  ConvArray<const float> read = {array.data, {}};
  std::copy_n(array.strides, 5, read.strides);
  return read;
}

// One stage after the other.
void RunStages(const ConvStage* stages, int count, ConvArray<const float> in,
               ConvArray<float> out) {
  std::optional<Scratch<float>> results[kMostStages];
  for (int i = 0; i < count; ++i) {
    const ConvStage& stage = stages[i];
    ConvArray<float> to = out;
    if (i + 1 < count) {
      results[i].emplace(static_cast<std::size_t>(stage.problem.batch * Floats(stage.problem)));
      to = Dense(stage.problem, results[i]->data());
    }
    ConvFloat(stage.problem, in, stage.weight, stage.packed, stage.epilogue, to);
    in = Read(to);
  }
}

// Some pixels that follow each other, at equal distances.
template <typename T>
struct Pixels {
  T* data;
  std::int64_t step;
};

// The products of `count` pixels. residual: of the first one, if the stage has a residual.
void RunPixels(const ConvStage& stage, Pixels<const float> in, Pixels<float> out,
               std::int64_t count, const float* residual) {
  static constexpr ConvTap kTap = {{0, 0, 0}, 0};
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  const ConvProblem& problem = stage.problem;
  ConvJob job = {};
  job.in = in.data;
  job.out = out.data;
  job.weights = stage.packed;
  job.epilogue = stage.epilogue;
  job.epilogue.residual = residual;
  job.taps = &kTap;
  job.tap_count = 1;
  job.inner = problem.in_channels;
  job.channels = problem.out_channels;
  job.block_stride = problem.in_channels * kConvBlock;
  std::fill_n(job.in_sizes, 3, INT64_MAX);
  std::fill_n(job.steps, 3, 1);
  std::fill_n(job.grid, 3, 1);
  job.grid[3] = count;
  job.in_strides[3] = in.step;
  job.out_strides[3] = out.step;
  job.tiles = CeilDiv(count, kernels.tile);
  kernels.tiles(job, 0, job.tiles, 0, CeilDiv(problem.out_channels, kConvBlock));
}

// Computes rows of the last stage; the rows of the first one that the next rows read again are
// kept.
class Rows {
 public:
  Rows(const ConvStage* stages, int count, ConvArray<const float> in, ConvArray<float> out)
      : stages_(stages), count_(count), in_(in), out_(out) {
    const ConvProblem& filter = stages[1].problem;
    reach_ = (filter.kernel[1] - 1) * filter.dilation[1] + 1;
    row_ = filter.in[2] * filter.groups * filter.in_channels;
    const std::int64_t most = std::max(kRowFloats / std::max<std::int64_t>(row_, 1), reach_);
    step_ = std::min((most - reach_) / filter.stride[1] + 1, filter.out[1]);
    const std::int64_t rows = (step_ - 1) * filter.stride[1] + reach_;
    first_.emplace(static_cast<std::size_t>(rows * row_));
    out_row_ = filter.out[2] * filter.groups * filter.out_channels;
    if (count == 3) second_.emplace(static_cast<std::size_t>(step_ * out_row_));
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

    float* out = out_.data + n * out_.strides[0] + h * out_.strides[3];
    const bool is_last = count_ == 2;
    const std::int64_t channels = filter.groups * filter.out_channels;
    // The rows are an image of their own, with less padding.
    ConvProblem some = filter;
    some.batch = 1;
    some.in[1] = last_ - begin_;
    some.out[1] = count;
    some.padding[1] = begin_ - top;
    const std::int64_t in_strides[4] = {0, 0, row_, filter.groups * filter.in_channels};
    const std::int64_t out_strides[4] = {0, 0, is_last ? out_.strides[3] : out_row_,
                                         is_last ? out_.strides[4] : channels};
    const ConvEpilogue& last = stages_[count_ - 1].epilogue;
    const float* residual = last.residual;
    if (residual != nullptr) {
      residual += n * last.residual_strides[0] + h * last.residual_strides[2];
    }
    ConvEpilogue epilogue = stages_[1].epilogue;
    if (is_last) epilogue.residual = residual;
    const DepthwiseJob job =
        MakeDepthwiseJob(some, first_->data(), in_strides, stages_[1].packed, epilogue,
                         is_last ? out : second_->data(), out_strides);
    AOTI_SLIM_CURRENT_KERNELS(kConv).depthwise(job, 0, count);
    if (is_last) return;
    RunPixels(stages_[2], {second_->data(), channels}, {out, out_.strides[4]},
              count * filter.out[2], residual);
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
    RunPixels(stages_[0], {in_.data + n * in_.strides[0] + from * in_.strides[3], in_.strides[4]},
              {rows + kept * row_, filter.groups * filter.in_channels},
              (last_ - from) * filter.in[2], nullptr);
  }

  const ConvStage* stages_;
  int count_;
  ConvArray<const float> in_;
  ConvArray<float> out_;
  std::int64_t reach_;          // rows of a filter
  std::int64_t row_, out_row_;  // floats in a row of the first result, and of the second
  std::int64_t step_;           // rows of the second result that are computed at once
  std::optional<Scratch<float>> first_, second_;
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

// Whether channels are contiguous, and the pixels of an image at equal distances.
template <typename T>
bool IsEven(const ConvArray<T>& array, std::int64_t width) {
  return array.strides[1] == 1 && array.strides[3] == array.strides[4] * width;
}

// Whether rows are computed through all stages: if they can be, and if it saves much reading.
bool ByRows(const ConvStage* stages, int count, const ConvArray<const float>& in,
            const ConvArray<float>& out) {
  const ConvProblem& filter = stages[1].problem;
  const ConvProblem& last = stages[count - 1].problem;
  const ConvEpilogue& epilogue = stages[count - 1].epilogue;
  if (epilogue.residual != nullptr &&
      epilogue.residual_strides[2] != epilogue.residual_strides[3] * last.out[2]) {
    return false;
  }
  if (!IsOfPixels(stages[0].problem) || !filter.depthwise() || filter.in[0] != 1) return false;
  if (count == 3 && !IsOfPixels(last)) return false;
  for (int i = 0; i < count; ++i) {
    const ConvProblem& problem = stages[i].problem;
    if (problem.in_channels * problem.out_channels > kMostWeights) return false;
  }
  return filter.batch * Floats(stages[0].problem) > kStays && IsEven(in, filter.in[2]) &&
         IsEven(out, last.out[2]);
}

}  // namespace

void ConvChain(const ConvStage* given, int count, ConvArray<const float> in, ConvArray<float> out) {
  if (!ByRows(given, count, in, out)) return RunStages(given, count, in, out);
  std::optional<Scratch<float>> own_weights[kMostStages];
  ConvStage stages[kMostStages];
  for (int i = 0; i < count; ++i) {
    stages[i] = given[i];
    if (stages[i].packed != nullptr) continue;
    own_weights[i].emplace(static_cast<std::size_t>(ConvPackedSize(stages[i].problem)));
    ConvPack(stages[i].problem, stages[i].weight, own_weights[i]->data());
    stages[i].packed = own_weights[i]->data();
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
}

}  // namespace aoti::slim
