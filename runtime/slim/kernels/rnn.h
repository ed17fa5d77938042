// Vector kernels of recurrent layers, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_RNN_H_
#define AOTI_RUNTIME_SLIM_KERNELS_RNN_H_

#include <stdint.h>

namespace aoti::slim {

struct RnnKernels {
  // One step of an LSTM for one sequence. gates: what comes of the matrix products, [4, size]: of
  // input, forget, cell and output gate. cell is updated in place.
  void (*lstm)(const float* gates, int64_t size, float* cell, float* hidden);
};

#define AOTI_RNN_KERNELS(isa)   \
  namespace isa {               \
  extern const RnnKernels kRnn; \
  }
#if defined(__x86_64__)
AOTI_RNN_KERNELS(baseline)
AOTI_RNN_KERNELS(x86_v3)
AOTI_RNN_KERNELS(x86_v4)
#else
AOTI_RNN_KERNELS(neon)
#endif
#undef AOTI_RNN_KERNELS

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_RNN_H_
