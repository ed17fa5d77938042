// The kernel's description of a depthwise convolution.

#ifndef AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_
#define AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_

#include <algorithm>
#include <cstdint>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/kernels/conv.h"

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

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_DEPTHWISE_H_
