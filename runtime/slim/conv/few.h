// Convolutions with few channels in their results.

#ifndef AOTI_RUNTIME_SLIM_CONV_FEW_H_
#define AOTI_RUNTIME_SLIM_CONV_FEW_H_

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/phase.h"

namespace aoti::slim {

// Whether RunFewChannels() is faster than tiles of pixels and vectors of channels.
bool SuitsFewChannels(const ConvProblem& problem, const Phase& phase);
// Computes the results of a phase.
void RunFewChannels(const Phase& phase);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_FEW_H_
