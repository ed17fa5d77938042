// Vector kernels of recurrent layers, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_RNN_H_
#define AOTI_RUNTIME_SLIM_KERNELS_RNN_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

struct RnnKernels {
  // One step of an LSTM for one sequence. gates: the results of the matrix products, [4, size], for
  // the input, forget, cell and output gates. cell is updated in place.
  void (*lstm)(const float* gates, int64_t size, float* cell, float* hidden);
};

AOTI_SLIM_DECLARE_KERNELS(RnnKernels, kRnn)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_RNN_H_
