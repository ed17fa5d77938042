// The inner loops of products with 4-bit and 8-bit weights, compiled once per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_H_

#include <stdint.h>

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/levels.h"
#include "runtime/slim/kernels/rounding.h"

namespace aoti::slim {

// For integer products, activations become integers of 24 bits, or of 16 bits if they are 16-bit
// numbers: x[k] = step * sum_p plane_p[k] * 256^p. A run of activations shares one step, and the
// error is at most half a step. Relative to the largest number of the run, this is at most float's
// own rounding error.
constexpr int kMaxPlanes = 3;

// 4-bit weights w[n, k] have the layout of PyTorch for CPUs without AVX-512: blocks of 32 rows, in
// which each column has 16 bytes, and byte d has w[d, k] in its low and w[d + 16, k] in its high
// bits. If n is not a multiple of 32, the last block has 16 rows, and byte d has w[2d, k] and w[2d
// + 1, k].
constexpr int kInt4Block = 32;

// A row x[k] as integers.
struct Int4Round {
  int64_t k;
  int64_t group;
  const float* x;
  int planes;
  int8_t* to[kMaxPlanes];
  float* steps;  // for each group
  float* sums;   // sums of x, for each group
};

// One row of activations times one block of weights.
struct Int4Dots {
  int64_t k;
  int64_t group;           // the number of k that share a scale and a zero point
  const uint8_t* weights;  // one block
  const int8_t* planes[kMaxPlanes];
  const float* steps;
  const float* sums;
  const void* scales;  // pairs (scale, zero), from the block's first row and first group on
  int64_t scales_row;  // elements between groups
  float* out;          // kInt4Block
};

// Writes to[p][k][j] = (w[16 p + j, k] - 8) * scale + zero, in panels as in gemm.h; `rows` is 32,
// or 16 in the last block. scales: a pair (scale, zero) for each group and row.
struct Int4Widen {
  int64_t k;
  int64_t group;
  const uint8_t* weights;
  const float* scales;  // [group][2][32]: the scales of a block, then its zeros
  int rows;
  float* to;
};

// The number of activations of a row that become integers together; the last run is padded with
// zeros.
constexpr int kInt8Run = 1024;
struct alignas(64) Int8Run {
  int8_t planes[kMaxPlanes][kInt8Run];
  // Initial values of the sums, because 128 is added to weights when they are read: bytes 4 i.. of
  // each 64 bytes are for sum i.
  int32_t start[kMaxPlanes][16];
  float step;
};

// to: as many runs as k requires. Returns false if x has an infinity or NaN.
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
  const Int8Run* runs;  // a as runs, row by row; for int8_run_dots
  const int8_t* b;      // contiguous
  const float* scales;
  float* c;
  int64_t c_row;
};

constexpr int64_t kInt8Depth = 64;

// The fours in a panel of kPanel rows or columns, which has whole steps of kInt8Depth.
[[gnu::always_inline]] constexpr int64_t Int8PanelSize(int64_t k) {
  return RoundUp(k, kInt8Depth) / 4 * kPanel;
}

// c[i, j] = sum_k a[i, k] * b[j, k], in int32.
struct Int8Product {
  int64_t m, n, k;
  const uint32_t* a;  // panels of kPanel rows: four numbers of each row, then the next four
  int64_t a_panel;    // between panels
  const int8_t* b;    // contiguous
  int32_t* c;
  int64_t c_row;
};

// Makes float32 of the sums c[i, j], in the same memory:
// activation(c[i, j] * steps[i] * scales[j] + bias[j]).
struct Int8Finish {
  const float* steps;
  const float* scales;
  const float* bias;  // may be null
  GemmActivation activation;
};

// The same for many rows, which are read where they lie.
struct Int8RowsProduct {
  int64_t m, n, k;
  const int8_t* a;
  int64_t a_row;
  const int32_t* starts;  // for each row of a, what its sums start at
  const uint32_t* b;      // raised panels of kPanel columns; as many as whole steps of 64 take
  int64_t b_panel;        // between panels
  int32_t* c;
  int64_t c_row;
  const Int8Finish* finish;  // may be null
};

// Rows of activations as integers. The groups of a row share a step; the last one may be shorter,
// and is padded with zeros to whole fours.
struct Planes {
  int64_t k, group;
  int count;           // of planes
  const int8_t* data;  // of the first row
  int64_t row;         // bytes between rows, between groups, and between the planes of a group
  int64_t run;
  int64_t plane;
};

// c[i, j] = sum_k x[i, k] * w[j, k] for up to 32 columns j, where w is
// - zeros: scale * (raised number - raise) + zero, with scales[group][2][32],
// - otherwise: scales[j] * (raised number - raise).
struct PlanesProduct {
  int64_t m;
  Planes x;
  const float* steps;  // of the first row and group
  int64_t steps_row;   // bytes between rows, and between groups
  int64_t steps_group;
  const float* sums;      // of x, for each row and group; for zeros
  const int32_t* starts;  // for each row, group and plane: -raise * (sum of the plane)
  const uint32_t* b;      // two raised panels: four numbers of each column, then the next four
  int64_t b_panel;        // between panels
  bool zeros;
  const float* scales;
  int64_t columns;
  float* c;
  int64_t c_row;

  const float* StepAt(int64_t row, int64_t at) const {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(steps) + row * steps_row +
                                          at * steps_group);
  }
};

struct QuantizedKernels {
  // Returns false if x has an infinity or NaN.
  bool (*int4_round)(const Int4Round& round);
  // For scales of float (3 planes), bfloat16 and float16 (2 planes). Null if the CPU lacks the
  // instructions.
  void (*int4_dots[3])(const Int4Dots& dots);
  // With more rows of x than this, converting the weights to float first is faster.
  int64_t int4_dots_rows;
  void (*int4_widen)(const Int4Widen& widen);

  // A block's numbers, raised by 8, as panels of PlanesProduct. k: a multiple of 4. Null, as those
  // below, if the CPU lacks the instructions.
  void (*int4_fours)(const uint8_t* weights, int64_t k, uint32_t* to, int64_t panel);
  void (*planes_starts)(const Planes& planes, int64_t m, int raise, int32_t* to);
  void (*planes_product[2])(const PlanesProduct& product);  // with 2 and 3 planes

  bool (*int8_round)(const Int8Round& round);
  // With 2 and 3 planes; null if the CPU lacks the instructions.
  void (*int8_run_dots[2])(const Int8Dots& dots);
  void (*int8_dots)(const Int8Dots& dots);
  // Makes panels of floats, for many rows of x.
  TransposeFunction int8_transpose;
  // Panels of Int8Product: to[k / 4 * kPanel + i] = from[i * from_row + k] and the three numbers
  // behind it, for i < kPanel and whole steps of kInt8Depth; what lies beyond `rows` or `depth` is
  // 0. raised: 128 is then added to each number. Null if the CPU lacks the instructions.
  void (*int8_fours)(const int8_t* from, int64_t from_row, int64_t rows, int64_t depth, bool raised,
                     uint32_t* to);
  void (*int8_product)(const Int8Product& product);  // takes raised panels
  void (*int8_amx)(const Int8Product& product);      // callers check whether this CPU has AMX
  // Sums of raised numbers times a row of a are too large by 128 * (sum over k of a).
  void (*int8_starts)(const int8_t* a, int64_t a_row, int64_t m, int64_t k, int32_t* to);
  void (*int8_rows)(const Int8RowsProduct& product);
  void (*int8_finish)(const Int8Finish& finish, int64_t m, int64_t n, int32_t* sums, int64_t row);
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
