#include "runtime/slim/conv/groups.h"

#include <algorithm>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/conv/phase.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using internal::ParallelFor;

// The floats of a copy: it is read from the first cache, or not from far behind it.
constexpr std::int64_t kBandFloats = 16 * 1024;

// The dim that bands divide: the height, or the width of a line.
int BandDim(const ConvProblem& problem) { return problem.out[0] * problem.out[1] > 1 ? 1 : 2; }

// Some rows of the results of one image and one group, or a part of a line, as a convolution of its
// own.
ConvProblem OfBand(const ConvProblem& all, std::int64_t rows) {
  ConvProblem band = all;
  band.batch = band.groups = 1;
  band.out[BandDim(all)] = rows;
  for (int d = 0; d < 3; ++d) {
    band.in[d] = Reach(band, d, band.out[d]);
    band.padding[d] = 0;
  }
  return band;
}

// What is the same for all bands of as many rows.
struct Band {
  Band(const ConvProblem& all, std::int64_t rows, const ConvEpilogue& epilogue,
       const std::int64_t (&out_strides)[4])
      : problem(OfBand(all, rows)),
        image(ContiguousImage(nullptr, problem.in, problem.in_channels, problem.in_channels)),
        // A row of the filter is one long tap.
        phase(problem, image, problem.dilation[2] == 1, {0, 0, 0}, epilogue, out_strides) {
    phase.job().zeros = nullptr;
  }

  std::int64_t floats() const { return image.strides[0]; }

  // Copies what the rows from `row` on read. from: the first pixel of the image and the group.
  void Copy(const ConvProblem& all, ConvArray<const float> in, const float* from, std::int64_t row,
            float* to) const {
    // The first pixel that they reach, which may be outside the image.
    std::int64_t at[3] = {-all.padding[0], -all.padding[1], -all.padding[2]};
    const int dim = BandDim(all);
    at[dim] += row * all.stride[dim];
    for (std::int64_t i = 0; i < problem.in[0]; ++i) {
      const std::int64_t d = at[0] + i;
      for (std::int64_t j = 0; j < problem.in[1]; ++j) {
        const std::int64_t h = at[1] + j;
        const bool inside = d >= 0 && d < all.in[0] && h >= 0 && h < all.in[1];
        CopyPadded(inside ? from + d * in.strides[2] + h * in.strides[3] : nullptr,
                   {in.strides[4], in.strides[1], problem.in_channels}, all.in[2], -at[2],
                   problem.in[2], to + i * image.strides[1] + j * image.strides[2]);
      }
    }
  }

  ConvProblem problem;
  Image image;
  Phase phase;
};

// The greatest number of rows whose copy has kBandFloats, but at least one.
std::int64_t RowsOfBand(const ConvProblem& problem) {
  const int dim = BandDim(problem);
  std::int64_t row = problem.in_channels;
  for (int d = 0; d < 3; ++d) row *= d == dim ? 1 : Reach(problem, d, problem.out[d]);
  const std::int64_t more = kBandFloats / row - Reach(problem, dim, 1);
  return std::clamp<std::int64_t>(more / problem.stride[dim] + 1, 1, problem.out[dim]);
}

}  // namespace

// Where the image lies, each pixel's part of a group is in another cache line, of a few sets of the
// cache.
bool SuitsGroupsApart(const ConvProblem& problem) {
  return problem.groups > 1 && !problem.transposed && !problem.depthwise() &&
         problem.numbers == ConvNumbers::kFloats && problem.in_channels <= kConvBlock &&
         problem.taps() > 1;
}

void RunGroupsApart(const ConvProblem& problem, ConvArray<const float> in, const float* weights,
                    const ConvEpilogue& epilogue, float* out,
                    const std::int64_t (&out_strides)[4]) {
  if (problem.batch * problem.out[0] * problem.out[1] * problem.out[2] == 0) return;
  const int dim = BandDim(problem);
  const std::int64_t rows = problem.out[dim];
  std::int64_t bands = CeilDiv(rows, RowsOfBand(problem));
  bands = std::max(bands, std::min(rows, CeilDiv(WantedPieces(), problem.batch * problem.groups)));

  // Each band has as many rows as one of these.
  const Band low(problem, rows / bands, epilogue, out_strides);
  const Band high(problem, CeilDiv(rows, bands), epilogue, out_strides);
  const std::int64_t blocks = CeilDiv(problem.out_channels, kConvBlock);
  const std::int64_t group_weights = blocks * high.phase.job().block_stride;
  // The groups of a pixel share cache lines and pages, so they follow each other.
  ParallelFor(
      0, problem.batch * bands * problem.groups,
      CeilDiv(kConvGrain, std::max<std::int64_t>(high.phase.pixels() * group_weights, 1)),
      [&](std::int64_t first, std::int64_t last) {
        Scratch<float> copy(static_cast<std::size_t>(high.floats()));
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t group = i % problem.groups;
          const std::int64_t number = i / problem.groups % bands;
          const std::int64_t n = i / problem.groups / bands;
          const std::int64_t row = rows * number / bands;
          const bool is_low = rows * (number + 1) / bands - row == rows / bands;
          const Band& band = is_low ? low : high;
          band.Copy(problem, in,
                    in.data + n * in.strides[0] + group * problem.in_channels * in.strides[1], row,
                    copy.data());
          ConvJob job = band.phase.job();
          job.in = copy.data();
          job.weights = weights + group * group_weights;
          job.out =
              out + n * out_strides[0] + row * out_strides[dim + 1] + group * problem.out_channels;
          job.epilogue = OfGroup(job.epilogue, group * problem.out_channels);
          MoveResidual(job.epilogue,
                       n * epilogue.residual_strides[0] + row * epilogue.residual_strides[dim + 1]);
          AOTI_SLIM_CURRENT_KERNELS(kConv).tiles(job, 0, job.tiles, 0, blocks);
        }
      });
}

}  // namespace aoti::slim
