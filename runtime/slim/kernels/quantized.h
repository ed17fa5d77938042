// The inner loops of products with 4-bit and 8-bit weights, compiled once per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_

#include <stdint.h>

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

// For products of integers, activations become integers of 24 bits, or of 16 where they are 16-bit
// numbers: x[k] = step * sum_p plane_p[k] * 256^p. One step serves a run of activations; the error
// is at most half of it, which is to the largest of the run as float's own rounding, or less.
constexpr int kMaxPlanes = 3;

// 4-bit weights w[n, k] come as PyTorch packs them for CPUs without AVX-512: in blocks of 32 rows,
// each column by column in 16 bytes: byte d has w[d, k] in its low and w[d + 16, k] in its high
// bits. Where n is no multiple of 32, the last block has 16 rows, and byte d has w[2d, k] and
// w[2d + 1, k].
constexpr int kInt4Block = 32;

// A row x[k] as integers.
struct Int4Round {
  int64_t k;
  int64_t group;
  const float* x;
  int planes;
  int8_t* to[kMaxPlanes];
  float* steps;  // for each group
  float* sums;   // of x, for each group
};

// One row of activations times one block of weights.
struct Int4Dots {
  int64_t k;
  int64_t group;           // so many k share scale and zero point
  const uint8_t* weights;  // one block
  const int8_t* planes[kMaxPlanes];
  const float* steps;
  const float* sums;
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

// Some activations of a row as integers, with zeros behind the last.
constexpr int kInt8Run = 1024;
struct alignas(64) Int8Run {
  int8_t planes[kMaxPlanes][kInt8Run];
  // What sums begin with, as weights are read with 128 added: bytes 4 i.. of each 64 go to sum i.
  int32_t start[kMaxPlanes][16];
  float step;
};

// to: as many as k makes. False where x has an infinity or NaN.
struct Int8Round {
  int64_t k;
  const float* x;
  int planes;
  Int8Run* to;
};

// c[i, j] = scales[j] * sum_k a[i, k] * b[j, k]
struct Int8Dots {
  int64_t m, n, k;
  const float* a;       // contiguous; for int8_dots
  const Int8Run* runs;  // the same, row by row; for int8_run_dots
  const int8_t* b;      // contiguous
  const float* scales;
  float* c;
  int64_t c_row;
};

struct QuantizedKernels {
  // False where x has an infinity or NaN.
  bool (*int4_round)(const Int4Round& round);
  // For scales of float, with 3 planes, and bfloat16 and float16, with 2. Null where the CPU has no
  // instructions for it.
  void (*int4_dots[3])(const Int4Dots& dots);
  // With more rows of x than this it pays to turn the weights into floats first.
  int64_t int4_dots_rows;
  void (*int4_widen)(const Int4Widen& widen);

  bool (*int8_round)(const Int8Round& round);
  // With 2 and 3 planes; null where the CPU has no instructions for it.
  void (*int8_run_dots[2])(const Int8Dots& dots);
  void (*int8_dots)(const Int8Dots& dots);
  // Panels of floats, for many rows of x.
  TransposeFunction int8_transpose;
};

AOTI_SLIM_DECLARE_KERNELS(QuantizedKernels, kQuantized)
#if defined(__x86_64__)
namespace x86_v4 {
// For CPUs that also have AVX512_VNNI and AVX512_VBMI.
extern const QuantizedKernels kQuantizedVnni;
}  // namespace x86_v4
#endif

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_
