// Convolutions of images of bfloat16 and float16 in floats. Some rows are widened at a time, so
// that an image does not take twice its memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

// Floats that are widened at a time: enough that what is done once for each part, as with the
// weights of Winograd's algorithm, takes little of the time.
constexpr std::int64_t kPart = 1 << 19;
// A part has at least as many rows of results: neighbours read some rows of the image twice.
constexpr std::int64_t kLeastRows = 8;

using WidenPixels = void (*)(const std::uint16_t* from, std::int64_t count, float* to);

struct Dim {
  std::int64_t size, stride;
};

// Copies the problem's images as floats without gaps, and says how they lie. Channels that are
// contiguous stay so; otherwise, each channel is a plane.
ConvArray<const float> WidenImages(const ConvProblem& problem,
                                   const ConvArray<const std::uint16_t>& in, WidenPixels widen,
                                   float* to) {
  const std::int64_t channels = problem.groups * problem.in_channels;
  const bool last = in.strides[1] == 1 || channels == 1;
  ConvArray<const float> part = {to, {}};
  const Dim dims[5] = {{problem.batch, in.strides[0]},
                       {channels, in.strides[1]},
                       {problem.in[0], in.strides[2]},
                       {problem.in[1], in.strides[3]},
                       {problem.in[2], in.strides[4]}};
  constexpr int kChannelsLast[5] = {0, 2, 3, 4, 1}, kPlanes[5] = {0, 1, 2, 3, 4};
  const auto& order = last ? kChannelsLast : kPlanes;
  std::int64_t all = 1, line = 1;
  int inner = 5;  // order[inner..] are numbers that lie side by side: a line
  for (int i = 4; i >= 0; --i) {
    const Dim& dim = dims[order[i]];
    if (inner == i + 1 && (dim.stride == line || dim.size == 1)) {
      inner = i;
      line *= dim.size;
    }
    part.strides[order[i]] = all;
    all *= dim.size;
  }
  if (line == all) {
    internal::ParallelFor(0, all, kCopyGrain, [&](std::int64_t first, std::int64_t end) {
      widen(in.data + first, end - first, to + first);
    });
    return part;
  }
  internal::ParallelFor(0, all / line, CeilDiv(kCopyGrain, line),
                        [&](std::int64_t first, std::int64_t end) {
                          for (std::int64_t i = first; i < end; ++i) {
                            std::int64_t rest = i, from = 0;
                            for (int d = inner - 1; d >= 0; --d) {
                              const Dim& dim = dims[order[d]];
                              from += rest % dim.size * dim.stride;
                              rest /= dim.size;
                            }
                            widen(in.data + from, line, to + i * line);
                          }
                        });
  return part;
}

// Whether rows of results can be computed from a part of the rows of an image.
bool InRows(const ConvProblem& problem) {
  if (problem.transposed || problem.in[0] != 1 || problem.out[0] != 1) return false;
  // Each row of results reads some of the image.
  const std::int64_t last = (problem.out[1] - 1) * problem.stride[1] - problem.padding[1];
  return problem.padding[1] < Reach(problem, 1, 1) && last < problem.in[1];
}

}  // namespace

void ConvWidened(const ConvProblem& problem, ConvArray<const std::uint16_t> in, bool half,
                 ConvArray<const float> weight, const float* packed, const ConvEpilogue& epilogue,
                 const ConvResults& out) {
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  const WidenPixels widen = half ? kernels.widen_half : kernels.widen;
  const PackedFilter filter(problem, weight, packed);
  const std::int64_t row =
      std::max<std::int64_t>(problem.in[2] * problem.groups * problem.in_channels, 1);
  const std::int64_t image = std::max<std::int64_t>(problem.in[0] * problem.in[1], 1) * row;
  const std::int64_t batch = std::clamp<std::int64_t>(kPart / image, 1, problem.batch);
  std::int64_t height = problem.out[1];
  if (image > kPart && InRows(problem)) {
    const std::int64_t rows = (kPart / row - Reach(problem, 1, 1)) / problem.stride[1] + 1;
    height = std::min(std::max(rows / 2 * 2, kLeastRows), height);
  }
  const std::int64_t most = std::min(Reach(problem, 1, height), problem.in[1]);
  const bool whole = height == problem.out[1];
  Scratch<float> wide(static_cast<std::size_t>(batch * (whole ? image : most * row)));
  for (std::int64_t n = 0; n < problem.batch; n += batch) {
    for (std::int64_t h = 0; h < problem.out[1]; h += height) {
      ConvProblem some = problem;
      some.batch = std::min(batch, problem.batch - n);
      ConvArray<const std::uint16_t> from = in;
      from.data += n * in.strides[0];
      if (!whole) {
        some.out[1] = std::min(height, problem.out[1] - h);
        const std::int64_t top = h * problem.stride[1] - problem.padding[1];
        const std::int64_t first = std::max<std::int64_t>(top, 0);
        some.in[1] = std::min(top + Reach(problem, 1, some.out[1]), problem.in[1]) - first;
        some.padding[1] = first - top;
        from.data += first * in.strides[3];
      }
      const ConvArray<const float> part = WidenImages(some, from, widen, wide.data());
      ConvEpilogue of_part = epilogue;
      MoveResidual(of_part, n * epilogue.residual_strides[0] + h * epilogue.residual_strides[2]);
      ConvResults results = out;
      const std::int64_t at = n * out.strides[0] + h * out.strides[3];
      if (results.floats != nullptr) results.floats += at;
      if (results.narrow != nullptr) results.narrow += at;
      ConvFloat(some, part, {}, filter.data(), of_part, results);
    }
  }
}

}  // namespace aoti::slim
