// The inner loops of products with 4-bit and 8-bit weights, compiled once per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_

#include <stdint.h>

#include "runtime/slim/kernels/gemm.h"

namespace aoti::slim {

// 4-bit weights w[n, k] come as PyTorch packs them for CPUs without AVX-512: in blocks of 32 rows,
// each column by column in 16 bytes: byte d has w[d, k] in its low and w[d + 16, k] in its high
// bits. Where n is no multiple of 32, the last block has 16 rows, and byte d has w[2d, k] and
// w[2d + 1, k].
constexpr int kInt4Block = 32;
// Activations are rounded to integers by runs of so many.
constexpr int kInt4Run = 32;

// One row of activations times one block of weights.
struct Int4Dots {
  int64_t k;
  int64_t group;           // so many k share scale and zero point
  const uint8_t* weights;  // one block
  // x[k] = step[k / kInt4Run] * sum_p planes[p][k] * 256^p, where of each four k the second and the
  // third are exchanged.
  const int8_t* planes[3];
  const float* steps;
  const float* sums;   // of x, for each group
  const void* scales;  // of the block's first row and the first group: pairs (scale, zero)
  int64_t scales_row;  // elements from one group to the next
  float* out;          // kInt4Block
};

// Writes to[p][k][j] = (w[16 p + j, k] - 8) * scale + zero, in panels as in gemm.h; `rows` is 32,
// or 16 in the last block. scales: a pair (scale, zero) per group and row.
struct Int4Widen {
  int64_t k;
  int64_t group;
  const uint8_t* weights;
  const float* scales;  // [group][2][32]: the scales of a block, then its zeros
  int rows;
  float* to;
};

struct QuantizedKernels {
  // For scales of float, with 3 planes, and bfloat16 and float16, with 2. Null where the CPU has no
  // instructions for it.
  void (*int4_dots[3])(const Int4Dots& dots);
  void (*int4_widen)(const Int4Widen& widen);
  // b is int8_t.
  GemmDotsFunction int8_dots;
};

#define AOTI_SLIM_QUANTIZED_KERNELS(isa)    \
  namespace isa {                           \
  extern const QuantizedKernels kQuantized; \
  }
#if defined(__x86_64__)
AOTI_SLIM_QUANTIZED_KERNELS(baseline)
AOTI_SLIM_QUANTIZED_KERNELS(x86_v3)
AOTI_SLIM_QUANTIZED_KERNELS(x86_v4)
#else
AOTI_SLIM_QUANTIZED_KERNELS(neon)
#endif
#undef AOTI_SLIM_QUANTIZED_KERNELS

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_
