// Convolutions in groups of few channels.

#ifndef AOTI_RUNTIME_SLIM_CONV_GROUPS_H_
#define AOTI_RUNTIME_SLIM_CONV_GROUPS_H_

#include <cstdint>

#include "runtime/slim/conv/conv.h"

namespace aoti::slim {

// Whether each group is better computed from a copy of its own channels.
bool SuitsGroupsApart(const ConvProblem& problem);

// weights: packed. out: has contiguous channels.
void RunGroupsApart(const ConvProblem& problem, ConvArray<const float> in, const float* weights,
                    const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4]);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_GROUPS_H_
