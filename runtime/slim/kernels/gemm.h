// The inner loops of matrix products, compiled once per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

// Packed matrices b[k, n] consist of panels of kPanel columns, each in row-major order: element (k,
// n) is at (n / kPanel * K + k) * kPanel + n % kPanel, where K is the number of rows; surplus
// columns of the last panel are 0. 16 floats are a cache line, one vector of AVX-512, and a whole
// number of vectors on other CPUs, so that one layout serves all CPUs.
constexpr int kPanel = 16;

// The numbers of a row of AMX's tiles of bfloat16.
constexpr int kAmxDepth = 32;

// Panels of the widest tile of pairs, and the most rows.
constexpr int kPairPanels = 2;
constexpr int kPairRows = 14;

// What is computed of each element of a product.
enum class GemmActivation : int { kNone = 0, kRelu = 1, kGelu = 2 };

// c[i, j] = activation(alpha * sum_k a[i, k] * b[k, j] + beta * bias[i, j]). Strides are in
// elements.
struct GemmTile {
  int64_t k;
  const float* a;  // a[i, k] is a[k * a_step + i]
  int64_t a_step;
  const void* b;  // row k of panel p is at b + p * b_panel + k * b_step
  int64_t b_step;
  int64_t b_panel;
  float* c;
  int64_t c_row;
  float alpha;
  float beta;
  const float* bias;  // may be null
  int64_t bias_row;
  int64_t bias_col;  // 0 or 1
  GemmActivation activation;
  // What large tiles of float bring into the cache meanwhile: a part of the panels that are read
  // next, so many bytes of each for each k.
  const char* ahead;
  int64_t ahead_step;
  // For one row: whether b comes from memory.
  bool streams;
};

using GemmTileFunction = void (*)(const GemmTile& tile, int rows, int columns);

// How many columns a call for one row gets: the kernels read them as several streams, which must be
// long.
constexpr int64_t kStreamedColumns = 4096;

// c[i, j] = sum_k a[i, k] * b[j, k]; both are contiguous along k.
struct GemmDots {
  int64_t m, n, k;
  const float* a;
  int64_t a_row;
  const void* b;
  int64_t b_row;  // stride of j
  float* c;
  int64_t c_row;
  bool streams;  // whether b comes from memory
};

using GemmDotsFunction = void (*)(const GemmDots& dots);

// to[j * to_step + i] = from[i * from_row + j], as float, for i < rows and j < columns. Elements
// with other i below to_step may get any value.
using TransposeFunction = void (*)(const void* from, int64_t from_row, int64_t rows,
                                   int64_t columns, float* to, int64_t to_step);

// to[i * kPanel + j] = from[i * from_row + j], as float, for i < rows and j < kPanel.
using WidenFunction = void (*)(const void* from, int64_t from_row, int64_t rows, float* to);

// c[j] = activation(alpha * sums[j] + beta * bias[j * bias_step]), as 16-bit numbers, for
// j < columns. bias: null, or of the type of c; bias_step: 0 or 1.
using NarrowFunction = void (*)(const float* sums, float alpha, const void* bias, int64_t bias_step,
                                float beta, GemmActivation activation, int64_t columns, void* c);

// sums[i, j] = sum_k a[i, k] * b[k, j] for bfloat16, or sums[i, j] += that. Two numbers with
// consecutive k are a pair: the first one is the low half.
struct GemmPairs {
  int64_t pairs;      // along k
  const uint16_t* a;  // pair p of row i is at a + i * a_row + 2 * p
  int64_t a_row;
  const uint32_t* b;  // row p of panel q, kPanel pairs, is at b + q * b_panel + p * kPanel
  int64_t b_panel;
  float* sums;  // with room for whole panels; may be null if c is not null and `add` is false
  int64_t sums_row;
  bool add;
  // Unless c is null, c[i, j] = activation(sums[i, j] + bias[j]) is written, and not `sums`.
  uint16_t* c;
  int64_t c_row;
  int columns;           // of c
  const uint16_t* bias;  // may be null
  GemmActivation activation;
};

using GemmPairsFunction = void (*)(const GemmPairs& product, int rows, int panels);

// to[p * kPanel + j] = the pair of from[2 * p * from_row + j] and from[(2 * p + 1) * from_row + j],
// for j < kPanel; the last row of an odd number of rows is paired with zeros.
using PairRowsFunction = void (*)(const void* from, int64_t from_row, int64_t rows, uint32_t* to);

// sums = left * right for bfloat16 with AMX, or sums += that. A tile of left has kPanel rows, which
// are contiguous along k.
struct AmxProduct {
  int64_t steps;  // along k, each of kAmxDepth numbers
  const uint16_t* left[2];
  int64_t left_row[2];    // in bytes
  const uint32_t* right;  // pairs, in panels as those of GemmPairs
  int64_t right_panel;
  float* sums;
  int64_t sums_row;
  bool add;
};

struct AmxKernels {
  // Tiles belong to a thread. What calls `product` calls these before and after it.
  void (*begin)();
  void (*end)();
  // 1 or 2 tiles of left with 1 or 2 panels of right.
  void (*product)(const AmxProduct& product, int tiles, int panels);
  // to[p * kPanel + j] = the pair of from[j * from_row + 2 * p] and the number behind it, for
  // j < kPanel and whole steps; what lies beyond `rows` or `depth` is 0.
  void (*pair_columns)(const void* from, int64_t from_row, int64_t rows, int64_t depth,
                       uint32_t* to);
  // to[j * to_row + i] = from[i * from_row + j], for i and j < kPanel.
  void (*turn)(const float* from, int64_t from_row, float* to, int64_t to_row);
};

// The activation of `count` numbers, in place.
using ActivateFunction = void (*)(GemmActivation activation, float* values, int64_t count);

// Functions on numbers that may have 16 bits come in three versions: for float, bfloat16 and
// float16.
struct GemmKernels {
  int rows;                // rows of the largest tile
  int narrow;              // columns of the smallest tile, which divides kPanel
  unsigned char wide[16];  // [rows]: columns of the widest tile with that many rows
  int few_rows;            // tiles of 16-bit numbers have at most this many rows
  int64_t depth;           // the greatest number of k at a time whose data stays in the caches
  // The number of columns must be wide[rows], or at most `narrow`; for one row, also a half or a
  // quarter of wide[1].
  GemmTileFunction tile[3];
  GemmDotsFunction dots[3];
  TransposeFunction transpose[3];
  WidenFunction widen[3];
  NarrowFunction narrow_sums[3];  // null for float, and if the CPU lacks the instructions
  ActivateFunction activate;
  // Null where no CPU of the level has the instructions; callers check whether this CPU has them.
  // The number of panels must be kPairPanels or 1.
  GemmPairsFunction pairs;
  PairRowsFunction pair_rows;
  AmxKernels amx;  // likewise
};

AOTI_SLIM_DECLARE_KERNELS(GemmKernels, kGemm)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_H_
