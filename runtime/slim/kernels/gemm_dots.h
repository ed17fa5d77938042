// Products of matrices that are both contiguous along the summed dim. Only for kernels/gemm.cc and
// kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_DOTS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_DOTS_H_

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/gemm_load.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kDotRows = 4;
#else
constexpr int kDotRows = 3;
#endif
constexpr int kDotColumns = 4;
constexpr int kDotStreams = 4;
// Two vectors of each row at a time, so that enough sums hide the latency of additions.
constexpr int kDotUnroll = 2;
// How many bytes ahead memory is prefetched, which is enough to read it at full speed.
constexpr int64_t kAhead = 6144;
// The same for each of several streams: it goes on where the hardware prefetcher stops, at the end
// of a page.
constexpr int64_t kStreamAhead = 2048;

inline float Total(VecF v) {
  const Quad quarter = AddQuads(v);
  const Quad pair = quarter + __builtin_shufflevector(quarter, quarter, 2, 3, 0, 1);
  return pair[0] + pair[1];
}

// The remainder of each row after the last complete vector; not unrolled into each tile.
template <typename B>
__attribute__((noinline)) float RestOfDot(const float* a, const B* b, int64_t count) {
  float sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * ToFloat(b[k]);
  return sum;
}

template <int kTileRows, int kColumns, typename B>
void DotTile(const GemmDots& dots, int64_t i0, int64_t j0) {
  const float* a[kTileRows];
  const B* b[kColumns];
#pragma GCC unroll 4
  for (int i = 0; i < kTileRows; ++i) a[i] = dots.a + (i0 + i) * dots.a_row;
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) b[j] = static_cast<const B*>(dots.b) + (j0 + j) * dots.b_row;
  constexpr int kSums = kTileRows == 1 ? kDotUnroll : 1;
  VecF sum[kTileRows][kColumns][kSums] = {};
  // The rows are too short for the hardware prefetcher, so the columns that follow in memory are
  // prefetched here.
  const int64_t block = kColumns * dots.b_row * static_cast<int64_t>(sizeof(B));
  const bool near = sizeof(B) == 1 && block < kAhead;
  const char* ahead = reinterpret_cast<const char*>(b[0]) + (near ? kAhead : block);
  int64_t k = 0;
  for (; k + kSums * kLanes <= dots.k; k += kSums * kLanes) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) {
      VecF left[kTileRows];
#pragma GCC unroll 4
      for (int i = 0; i < kTileRows; ++i) left[i] = Load(a[i] + k + s * kLanes);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) {
        const VecF right = LoadFloats(b[j] + k + s * kLanes);
        if constexpr (sizeof(B) > 1) {
          __builtin_prefetch(ahead, 0, 2);
          ahead += kLanes * sizeof(B);
        }
#pragma GCC unroll 4
        for (int i = 0; i < kTileRows; ++i) sum[i][j][s] = Fma(left[i], right, sum[i][j][s]);
      }
    }
    if constexpr (sizeof(B) == 1) {  // a cache line has several vectors
      constexpr int kBytes = kSums * kColumns * kLanes;
#pragma GCC unroll 8
      for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(ahead + line);
      ahead += kBytes;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      VecF all = sum[i][j][0];
      if constexpr (kSums == 2) all += sum[i][j][1];
      float value = Total(all);
      if (k < dots.k) value += RestOfDot(a[i] + k, b[j] + k, dots.k - k);
      dots.c[(i0 + i) * dots.c_row + j0 + j] = value;
    }
  }
}

// One row times columns that are `step` apart. Each of them is read as a long stream, which the
// hardware prefetcher follows: several streams at a time are faster than one.
template <int kColumns, typename B, bool kAheadOfStreams>
void DotStreams(const GemmDots& dots, int64_t j0, int64_t step) {
  const float* a = dots.a;
  const B* b[kColumns];
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j) {
    b[j] = static_cast<const B*>(dots.b) + (j0 + j * step) * dots.b_row;
  }
  VecF sum[kColumns] = {};
  int64_t k = 0;
  for (; k + kLanes <= dots.k; k += kLanes) {
    const VecF left = Load(a + k);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) sum[j] = Fma(left, LoadFloats(b[j] + k), sum[j]);
    if constexpr (kAheadOfStreams) {
#pragma GCC unroll 8
      for (int j = 0; j < kColumns; ++j) {
        __builtin_prefetch(b[j] + k + kStreamAhead / sizeof(B), 0, 2);
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j) {
    float value = Total(sum[j]);
    if (k < dots.k) value += RestOfDot(a + k, b[j] + k, dots.k - k);
    dots.c[j0 + j * step] = value;
  }
}

template <int kColumns, typename B>
void DotColumns(const GemmDots& dots, int64_t j) {
  int64_t i = 0;
  for (; i + kDotRows <= dots.m; i += kDotRows) DotTile<kDotRows, kColumns, B>(dots, i, j);
  for (; i < dots.m; ++i) DotTile<1, kColumns, B>(dots, i, j);
}

template <typename B>
void Dots(const GemmDots& dots) {
  int64_t j = 0;
  if (dots.m == 1) {
    const int64_t step = dots.n / kDotStreams;
    for (int64_t i = 0; i < step; ++i) {
      if (dots.streams) {
        DotStreams<kDotStreams, B, true>(dots, i, step);
      } else {
        DotStreams<kDotStreams, B, false>(dots, i, step);
      }
    }
    // Every column is summed up in the same way, so that results don't depend on the split.
    for (j = kDotStreams * step; j < dots.n; ++j) DotStreams<1, B, false>(dots, j, 1);
  }
  for (; j + kDotColumns <= dots.n; j += kDotColumns) DotColumns<kDotColumns, B>(dots, j);
  for (; j < dots.n; ++j) DotColumns<1, B>(dots, j);
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_DOTS_H_
