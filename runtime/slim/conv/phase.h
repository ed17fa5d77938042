// What the kernel for tiles computes in one go: the results that the same taps contribute to.

#ifndef AOTI_RUNTIME_SLIM_CONV_PHASE_H_
#define AOTI_RUNTIME_SLIM_CONV_PHASE_H_

#include <algorithm>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

// The least work for a thread, in multiplications.
constexpr std::int64_t kConvGrain = 1 << 18;

// More pieces than threads, because threads run at different speeds.
inline std::int64_t WantedPieces() {
  const std::int64_t threads = internal::MaxThreads();
  return threads > 1 ? 4 * threads : 1;
}

// At least so many pieces, and as many for each thread.
inline std::int64_t EvenPieces(std::int64_t pieces) {
  const std::int64_t threads = internal::MaxThreads();
  return pieces > 1 ? CeilDiv(pieces, threads) * threads : pieces;
}

inline void MoveResidual(ConvEpilogue& epilogue, std::int64_t elements) {
  if (epilogue.residual != nullptr) epilogue.residual += elements;
  if (epilogue.narrow_residual != nullptr) epilogue.narrow_residual += elements;
}

// One group and one phase: the results that the same taps contribute to, at a fixed step.
class Phase {
 public:
  // A convolution has one phase. A phase of a transposed convolution has the results phase[d] + i *
  // stride[d].
  Phase(const ConvProblem& problem, const Image& image, bool merge_width,
        const std::int64_t (&phase)[3], const ConvEpilogue& epilogue,
        const std::int64_t (&out_strides)[4])
      : group_(image.group), taps_(static_cast<std::size_t>(problem.taps())) {
    job_.numbers = problem.numbers;
    job_.inner = problem.in_channels * (merge_width ? problem.kernel[2] : 1);
    job_.epilogue = epilogue;
    job_.grid[0] = problem.batch;
    job_.in_strides[0] = image.strides[0];
    job_.out_strides[0] = out_strides[0];
    for (int d = 0; d < 3; ++d) {
      const std::int64_t every = problem.transposed ? problem.stride[d] : 1;
      job_.steps[d] = problem.transposed ? 1 : problem.stride[d];
      job_.in_sizes[d] = image.sizes[d];
      job_.in_strides[d + 1] = image.strides[d + 1];
      job_.grid[d + 1] = CeilDiv(problem.out[d] - phase[d], every);
      job_.out_strides[d + 1] = out_strides[d + 1] * every;
      MoveResidual(job_.epilogue, phase[d] * epilogue.residual_strides[d + 1]);
      job_.epilogue.residual_strides[d + 1] *= every;
      job_.low[d] = job_.high[d] = 0;
    }
    AddTaps(problem, merge_width, phase);
    job_.taps = taps_.data();
    if (!reaches_outside()) Flatten();
    job_.channels = problem.out_channels;
    job_.block_stride = Weights(problem.taps() * problem.in_channels);
    SplitIntoTiles();
  }

  // Whether some tap of some result lies outside the image.
  bool reaches_outside() const {
    for (int d = 0; d < 3; ++d) {
      const std::int64_t last = (job_.grid[d + 1] - 1) * job_.steps[d];
      if (job_.low[d] < 0 || last + job_.high[d] >= job_.in_sizes[d]) return true;
    }
    return false;
  }
  // Whether each result reads one pixel of the image, at its own place.
  bool ReadsPixels() const {
    return job_.tap_count == 1 && !reaches_outside() &&
           std::ranges::all_of(taps_[0].at, [](std::int64_t at) { return at == 0; });
  }
  ConvJob& job() { return job_; }
  const ConvJob& job() const { return job_; }
  // From the input of one group to that of the next.
  std::int64_t group() const { return group_; }
  std::int64_t pixels() const { return job_.grid[0] * job_.grid[1] * job_.grid[2] * job_.grid[3]; }

 private:
  void AddTaps(const ConvProblem& problem, bool merge_width, const std::int64_t (&phase)[3]) {
    const std::int64_t kernel[3] = {problem.kernel[0], problem.kernel[1],
                                    merge_width ? 1 : problem.kernel[2]};
    std::int64_t at[3];
    const auto place = [&](int d, std::int64_t k) {
      if (!problem.transposed) {
        at[d] = k * problem.dilation[d] - problem.padding[d];
        return true;
      }
      const std::int64_t distance = phase[d] + problem.padding[d] - k * problem.dilation[d];
      at[d] = distance / problem.stride[d];
      return distance % problem.stride[d] == 0;
    };
    job_.tap_count = 0;
    for (std::int64_t kd = 0; kd < kernel[0]; ++kd) {
      if (!place(0, kd)) continue;
      for (std::int64_t kh = 0; kh < kernel[1]; ++kh) {
        if (!place(1, kh)) continue;
        for (std::int64_t kw = 0; kw < kernel[2]; ++kw) {
          if (!place(2, kw)) continue;
          const std::int64_t index = (kd * kernel[1] + kh) * kernel[2] + kw;
          taps_[static_cast<std::size_t>(job_.tap_count)] = {{at[0], at[1], at[2]},
                                                             Weights(index * job_.inner)};
          for (int d = 0; d < 3; ++d) {
            job_.low[d] = job_.tap_count == 0 ? at[d] : std::min(job_.low[d], at[d]);
            job_.high[d] = job_.tap_count == 0 ? at[d] : std::max(job_.high[d], at[d]);
          }
          ++job_.tap_count;
        }
      }
    }
  }

  // Treats all results as one row if they are at equal distances from each other.
  void Flatten() {
    for (int d = 2; d >= 0; --d) {
      const std::int64_t in_step = d == 0 ? 1 : job_.steps[d - 1];
      if (job_.grid[d] != 1) {
        const auto follows = [&](const std::int64_t (&strides)[4]) {
          return strides[d] == job_.grid[3] * strides[3];
        };
        if (job_.in_strides[d] * in_step != job_.grid[3] * job_.steps[2] * job_.in_strides[3] ||
            !follows(job_.out_strides)) {
          break;
        }
        if (HasResidual(job_.epilogue) && !follows(job_.epilogue.residual_strides)) break;
        job_.grid[3] *= job_.grid[d];
        job_.grid[d] = 1;
      }
    }
    // If no tap lies outside, no check is needed.
    for (int d = 0; d < 3; ++d) {
      job_.low[d] = job_.high[d] = 0;
      job_.in_sizes[d] = INT64_MAX;
    }
  }

  // A tile whose pixels are in two rows of the image reads a pointer for each pixel and input. With
  // one vector of channels, that takes half as long again.
  void SplitIntoTiles() {
    const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
    job_.tiles = CeilDiv(pixels(), kernels.tile);
    const std::int64_t each = CeilDiv(job_.grid[3], kernels.tile);
    const bool large = 4 * job_.grid[3] >= 3 * each * kernels.tile;
    if (job_.channels > kernels.lanes || !large) return;
    job_.row_tiles = each;
    job_.tiles = job_.grid[0] * job_.grid[1] * job_.grid[2] * each;
  }

  // From the weights of a block for an input to those for a later one.
  std::int64_t Weights(std::int64_t inputs) const {
    return WeightRows(job_.numbers, inputs) * kConvBlock;
  }

  std::int64_t group_;
  ConvJob job_ = {};
  Scratch<ConvTap> taps_;
};

// The part of an epilogue for the channels from `channel` on.
inline ConvEpilogue OfGroup(const ConvEpilogue& all, std::int64_t channel) {
  ConvEpilogue part = all;
  for (const float** values : {&part.scale, &part.shift}) {
    if (*values != nullptr) *values += channel;
  }
  MoveResidual(part, channel);
  return part;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_PHASE_H_
