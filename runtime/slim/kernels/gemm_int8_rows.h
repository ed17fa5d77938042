// Exact products of many rows of int8 with AVX512_VNNI. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_ROWS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_ROWS_H_

#include <immintrin.h>

#include "runtime/slim/kernels/gemm_int8.h"
#include "runtime/slim/kernels/int8_finish.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/quantized_vnni.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// Rows and panels of a tile: 24 sums, which with the panels' numbers and one of a fill the
// registers.
constexpr int kInt8TileRows = 6;
constexpr int kInt8TilePanels = 4;

AOTI_SLIM_VNNI void StartsOfInt8(const int8_t* a, int64_t a_row, int64_t m, int64_t k,
                                 int32_t* to) {
  for (int64_t i = 0; i < m; ++i) to[i] = StartOfInt8(a + i * a_row, k);
}

// _mm512_dpbusd_epi32(), for which gcc would keep a second copy of many sums, and so of most of
// them on the stack.
AOTI_SLIM_VNNI __attribute__((always_inline)) inline void AddProductsOfFours(__m512i left,
                                                                             __m512i right,
                                                                             __m512i& sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
}

// Adds the products of four numbers of each row, or of fewer at the end of a row.
template <int kRows, bool kWhole>
AOTI_SLIM_VNNI __attribute__((always_inline)) inline void Int8RowsStep(
    const int8_t* a, int64_t a_row, __mmask16 there, const uint32_t* b, int64_t b_panel,
    __m512i (&sum)[kRows][kInt8TilePanels]) {
  __m512i w[kInt8TilePanels];
#pragma GCC unroll 4
  for (int p = 0; p < kInt8TilePanels; ++p) w[p] = _mm512_loadu_si512(b + p * b_panel);
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    __m512i x;
    if constexpr (kWhole) {
      int32_t four;
      __builtin_memcpy(&four, a + i * a_row, 4);
      x = _mm512_set1_epi32(four);
    } else {
      x = _mm512_maskz_broadcastd_epi32(static_cast<__mmask16>(-1),
                                        _mm_maskz_loadu_epi8(there, a + i * a_row));
    }
#pragma GCC unroll 4
    for (int p = 0; p < kInt8TilePanels; ++p) AddProductsOfFours(w[p], x, sum[i][p]);
  }
}

// kRows rows times 64 columns, of which `columns` are stored.
template <int kRows>
AOTI_SLIM_VNNI void Int8RowsTile(const Int8RowsProduct& product, int64_t i, const uint32_t* b,
                                 int32_t* c, int64_t columns) {
  __m512i sum[kRows][kInt8TilePanels];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kInt8TilePanels; ++p) sum[r][p] = _mm512_set1_epi32(product.starts[i + r]);
  }
  const int8_t* a = product.a + i * product.a_row;
  const int64_t a_row = product.a_row, b_panel = product.b_panel;
  const int64_t whole = product.k / 4 * 4;
  if (whole < product.k) {  // before the loop, after which the compiler would need more registers
    const auto there = static_cast<__mmask16>((1U << (product.k - whole)) - 1);
    Int8RowsStep<kRows, false>(a + whole, a_row, there, b + whole / 4 * kPanel, b_panel, sum);
  }
  for (const int8_t* end = a + whole; a < end; a += 4, b += kPanel) {
    Int8RowsStep<kRows, true>(a, a_row, 0, b, b_panel, sum);
  }
  const __mmask64 stored = columns < 64 ? (__mmask64{1} << columns) - 1 : ~__mmask64{0};
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kInt8TilePanels; ++p) {
      _mm512_mask_storeu_epi32(c + r * product.c_row + p * kPanel,
                               static_cast<__mmask16>(stored >> (p * kPanel)), sum[r][p]);
    }
  }
}

template <int kMost>
AOTI_SLIM_VNNI void AnyInt8RowsTile(int64_t rows, const Int8RowsProduct& product, int64_t i,
                                    const uint32_t* b, int32_t* c, int64_t columns) {
  if constexpr (kMost > 0) {
    if (rows < kMost) return AnyInt8RowsTile<kMost - 1>(rows, product, i, b, c, columns);
    Int8RowsTile<kMost>(product, i, b, c, columns);
  }
}

// Rows first, so that a tile's results lie together.
AOTI_SLIM_VNNI void VnniProductOfInt8Rows(const Int8RowsProduct& product) {
  constexpr int64_t kColumns = kInt8TilePanels * kPanel;
  for (int64_t i = 0; i < product.m; i += kInt8TileRows) {
    const int64_t rows = product.m - i < kInt8TileRows ? product.m - i : kInt8TileRows;
    for (int64_t j = 0; j < product.n; j += kColumns) {
      const int64_t columns = product.n - j < kColumns ? product.n - j : kColumns;
      AnyInt8RowsTile<kInt8TileRows>(rows, product, i, product.b + j / kPanel * product.b_panel,
                                     product.c + i * product.c_row + j, columns);
    }
    if (product.finish == nullptr) continue;
    Int8Finish finish = *product.finish;
    finish.steps += i;
    FinishInt8(finish, rows, product.n, product.c + i * product.c_row, product.c_row);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_ROWS_H_
