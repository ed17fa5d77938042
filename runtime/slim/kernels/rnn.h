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
  // The same for a GRU. input, hidden: the products of the input and of the hidden state, [3, size]
  // each, for the reset, update and new gates. before and after may be the same memory.
  void (*gru)(const float* input, const float* hidden, int64_t size, const float* before,
              float* after);
  // The same for a layer of one gate, [size].
  void (*plain)(const float* gates, int64_t size, bool relu, float* hidden);
};

AOTI_SLIM_DECLARE_KERNELS(RnnKernels, kRnn)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_RNN_H_
