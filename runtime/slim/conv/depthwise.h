// The kernel's description of a depthwise convolution, and how its rows are computed.

#ifndef AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_
#define AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

// Strides: batch, depth, height, width; channels are contiguous.
inline DepthwiseJob MakeDepthwiseJob(const ConvProblem& problem, const float* in,
                                     const std::int64_t (&in_strides)[4], const float* weights,
                                     const ConvEpilogue& epilogue, float* out,
                                     const std::int64_t (&out_strides)[4]) {
  DepthwiseJob job = {};
  job.in = in;
  job.out = out;
  job.weights = weights;
  job.epilogue = epilogue;
  job.channels = problem.groups * problem.out_channels;
  job.group = problem.in_channels;
  job.grid[0] = problem.batch;
  for (int d = 0; d < 3; ++d) {
    job.kernel[d] = problem.kernel[d];
    job.steps[d] = problem.stride[d];
    job.padding[d] = problem.padding[d];
    job.dilation[d] = problem.dilation[d];
    job.in_sizes[d] = problem.in[d];
    job.grid[d + 1] = problem.out[d];
  }
  std::copy_n(in_strides, 4, job.in_strides);
  std::copy_n(out_strides, 4, job.out_strides);
  return job;
}

// Where one of the result's batch * depth * height rows begins. strides: batch, depth, height.
inline std::int64_t RowOffset(const ConvProblem& problem, std::int64_t row,
                              const std::int64_t (&strides)[4]) {
  const std::int64_t plane = row / problem.out[1];
  return row % problem.out[1] * strides[2] + plane % problem.out[0] * strides[1] +
         plane / problem.out[0] * strides[0];
}

// Computes rows of a depthwise convolution. narrow: if it is not null, they are rounded to
// bfloat16, and written to it, with the job's strides, in place of the job's result.
inline void RunDepthwiseRows(const ConvProblem& problem, const DepthwiseJob& job,
                             std::int64_t first, std::int64_t last, std::uint16_t* narrow) {
  const ConvKernels& kernels = AOTI_SLIM_CURRENT_KERNELS(kConv);
  if (narrow == nullptr) return kernels.depthwise(job, first, last);
  const std::int64_t width = job.grid[3], pixel = job.out_strides[3];
  Scratch<float> row(static_cast<std::size_t>(width * job.channels));
  DepthwiseJob own = job;
  own.out = row.data();
  std::fill_n(own.out_strides, 3, 0);
  own.out_strides[3] = job.channels;
  // Pixels without gaps are rounded as one.
  const std::int64_t parts = pixel == job.channels ? 1 : width;
  const std::int64_t part = width * job.channels / parts;
  for (std::int64_t i = first; i < last; ++i) {
    kernels.depthwise(own, i, i + 1);
    std::uint16_t* to = narrow + RowOffset(problem, i, job.out_strides);
    for (std::int64_t w = 0; w < parts; ++w) {
      kernels.round(row.data() + w * part, part, to + w * pixel);
    }
  }
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_
