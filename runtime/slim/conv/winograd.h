// Plans convolutions for Winograd's algorithm: see WinogradJob.

#ifndef AOTI_RUNTIME_SLIM_CONV_WINOGRAD_H_
#define AOTI_RUNTIME_SLIM_CONV_WINOGRAD_H_

#include <cstdint>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/image.h"

namespace aoti::slim {

// Whether the algorithm takes less time. That does not depend on the number of threads, so that the
// results don't.
bool SuitsWinograd(const ConvProblem& problem);

// weights: packed. out: has contiguous channels. Returns false if some result is not finite; the
// results are then to be computed in another way.
bool RunWinograd(const ConvProblem& problem, const Image& image, const float* weights,
                 const ConvEpilogue& epilogue, float* out, const std::int64_t (&out_strides)[4]);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CONV_WINOGRAD_H_
