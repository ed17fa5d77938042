// Exact products of int8 with AVX512_VNNI and with AMX. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_H_

#include <immintrin.h>

#include "runtime/slim/kernels/gemm_amx.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/quantized_vnni.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

void FoursOfInt8(const int8_t* from, int64_t from_row, int64_t rows, int64_t depth, bool raised,
                 uint32_t* to) {
  const __m512i signs = _mm512_set1_epi8(raised ? -128 : 0);
  for (int64_t k = 0; k < depth; k += kInt8Depth, to += kInt8Depth / 4 * kPanel) {
    const int64_t rest = depth - k;
    const __mmask64 there = rest < 64 ? (__mmask64{1} << rest) - 1 : ~__mmask64{0};
    __m512i block[16];
    for (int i = 0; i < 16; ++i) {
      const __m512i row = i < rows ? _mm512_maskz_loadu_epi8(there, from + i * from_row + k)
                                   : _mm512_setzero_si512();
      block[i] = _mm512_xor_si512(row, signs);
    }
    TransposeSixteen(block);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kPanel, block[i]);
  }
}

// Stores 16 rows of sums of up to 16 columns, which have a row for each column.
inline void StoreTurned(const int32_t* sums, int64_t sums_row, int64_t rows, int64_t columns,
                        int32_t* c, int64_t c_row) {
  const __mmask16 there = static_cast<__mmask16>((1U << columns) - 1);
  __m512i block[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) block[i] = _mm512_loadu_si512(sums + i * sums_row);
  TransposeSixteen(block);
  if (rows == kPanel) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_mask_storeu_epi32(c + i * c_row, there, block[i]);
  } else {
    for (int i = 0; i < rows; ++i) _mm512_mask_storeu_epi32(c + i * c_row, there, block[i]);
  }
}

__attribute__((always_inline)) inline int32_t FourOf(const int8_t* from, int64_t count) {
  int32_t four = 0;
  __builtin_memcpy(&four, from, count);
  return four;
}

// Columns of b that are computed together.
constexpr int kInt8Columns = 8;

AOTI_SLIM_VNNI inline int32_t SumOfInt8(const int8_t* b, int64_t k) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (int64_t at = 0; at < k; at += 64) {
    const int64_t rest = k - at;
    const __mmask64 there = rest < 64 ? (__mmask64{1} << rest) - 1 : ~__mmask64{0};
    sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(there, b + at));
  }
  VecI total = (VecI)sum;
  total += (VecI)Rotated<8>((VecF)total);
  total += (VecI)Rotated<4>((VecF)total);
  total += (VecI)Rotated<2>((VecF)total);
  total += (VecI)Rotated<1>((VecF)total);
  return total[0];
}

// 128 is added to the numbers of the panels, so the sums start at -128 * (sum over k of b).
AOTI_SLIM_VNNI inline int32_t StartOfInt8(const int8_t* b, int64_t k) {
  return -128 * SumOfInt8(b, k);
}

// Adds the products of `count` numbers, at most four, of each column.
template <int kPanels>
AOTI_SLIM_VNNI __attribute__((always_inline)) inline void Int8Step(
    const int8_t* const (&b)[kInt8Columns], int64_t at, int64_t count, const uint32_t* a,
    int64_t a_panel, __m512i (&sum)[kInt8Columns][kPanels]) {
  __m512i x[kPanels];
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p) x[p] = _mm512_loadu_si512(a + p * a_panel);
#pragma GCC unroll 8
  for (int j = 0; j < kInt8Columns; ++j) {
    const __m512i w = _mm512_set1_epi32(FourOf(b[j] + at, count));
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) sum[j][p] = _mm512_dpbusd_epi32(sum[j][p], x[p], w);
  }
}

template <int kPanels>
AOTI_SLIM_VNNI inline void Int8Tile(const int8_t* const (&b)[kInt8Columns],
                                    const int32_t (&start)[kInt8Columns], int64_t k,
                                    const uint32_t* a, int64_t a_panel, int32_t* sums,
                                    int64_t sums_row) {
  __m512i sum[kInt8Columns][kPanels];
#pragma GCC unroll 8
  for (int j = 0; j < kInt8Columns; ++j) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) sum[j][p] = _mm512_set1_epi32(start[j]);
  }
  int64_t at = 0;
  for (; at + 4 <= k; at += 4, a += kPanel) Int8Step(b, at, 4, a, a_panel, sum);
  if (at < k) Int8Step(b, at, k - at, a, a_panel, sum);
#pragma GCC unroll 8
  for (int j = 0; j < kInt8Columns; ++j) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      _mm512_storeu_si512(sums + j * sums_row + p * kPanel, sum[j][p]);
    }
  }
}

AOTI_SLIM_VNNI void VnniProductOfInt8(const Int8Product& product) {
  // Columns first, two panels wide; turned when they are stored.
  alignas(64) int32_t sums[kPanel][2 * kPanel] = {};
  int32_t start[kPanel / kInt8Columns][kInt8Columns];
  const int8_t* b[kPanel / kInt8Columns][kInt8Columns];
  for (int64_t j = 0; j < product.n; j += kPanel) {
    const int64_t columns = product.n - j < kPanel ? product.n - j : kPanel;
    for (int64_t i = 0; i < kPanel; ++i) {
      const int64_t column = i < columns ? i : columns - 1;
      b[i / kInt8Columns][i % kInt8Columns] = product.b + (j + column) * product.k;
      start[i / kInt8Columns][i % kInt8Columns] =
          i < columns ? StartOfInt8(product.b + (j + column) * product.k, product.k) : 0;
    }
    for (int64_t i = 0; i < product.m; i += 2 * kPanel) {
      const int64_t rest = product.m - i;
      const uint32_t* a = product.a + i / kPanel * product.a_panel;
      for (int half = 0; half * kInt8Columns < columns; ++half) {
        int32_t* to = sums[half * kInt8Columns];
        if (rest > kPanel) {
          Int8Tile<2>(b[half], start[half], product.k, a, product.a_panel, to, 2 * kPanel);
        } else {
          Int8Tile<1>(b[half], start[half], product.k, a, product.a_panel, to, 2 * kPanel);
        }
      }
      for (int64_t p = 0; p < 2 * kPanel && p < rest; p += kPanel) {
        StoreTurned(sums[0] + p, 2 * kPanel, rest - p < kPanel ? rest - p : kPanel, columns,
                    product.c + (i + p) * product.c_row + j, product.c_row);
      }
    }
  }
}

// ---- AMX: a tile has 64 numbers of 16 columns of b, where they lie, or of 16 rows of a.

template <int kSums, int kLeft, int kRight>
inline void AddInt8TileProduct() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
}

// 16 columns of b; what is not a whole tile is copied, with zeros where there is nothing.
struct Int8Columns {
  const int8_t* b;
  int64_t columns, k;
  alignas(64) int8_t copy[kPanel][kInt8Depth];

  template <int kTile>
  inline void Load(int64_t at) {
    if (columns == kPanel && at + kInt8Depth <= k) return LoadTile<kTile>(b + at, k);
    const int64_t rest = k - at;
    const __mmask64 there = rest < 64 ? (__mmask64{1} << rest) - 1 : ~__mmask64{0};
    for (int64_t i = 0; i < kPanel; ++i) {
      const __m512i row =
          i < columns ? _mm512_maskz_loadu_epi8(there, b + i * k + at) : _mm512_setzero_si512();
      _mm512_store_si512(copy[i], row);
    }
    FinishStores();
    LoadTile<kTile>(copy, kInt8Depth);
    FinishStores();
  }
};

template <int kTiles, int kPanels>
inline void Int8Tiles(Int8Columns* left, const uint32_t* a, int64_t a_panel, int64_t k,
                      int32_t* sums) {
  constexpr int64_t kRow = 2 * kPanel;
  ZeroSums<kTiles, kPanels>();
  FinishStores();
  for (int64_t at = 0; at < k; at += kInt8Depth, a += kInt8Depth / 4 * kPanel) {
    LoadTile<kFirstRight>(a, 64);
    left[0].Load<kFirstLeft>(at);
    AddInt8TileProduct<0, kFirstLeft, kFirstRight>();
    if constexpr (kPanels > 1) {
      LoadTile<kFirstRight + 1>(a + a_panel, 64);
      AddInt8TileProduct<1, kFirstLeft, kFirstRight + 1>();
    }
    if constexpr (kTiles > 1) {
      left[1].Load<kFirstLeft + 1>(at);
      AddInt8TileProduct<2, kFirstLeft + 1, kFirstRight>();
      if constexpr (kPanels > 1) AddInt8TileProduct<3, kFirstLeft + 1, kFirstRight + 1>();
    }
  }
  float* to = reinterpret_cast<float*>(sums);
  StoreSums<kTiles, kPanels>(to, to + kPanel * kRow, 4 * kRow);
}

void AmxProductOfInt8(const Int8Product& product) {
  alignas(64) int32_t sums[2 * kPanel][2 * kPanel];
  BeginTiles();
  for (int64_t j = 0; j < product.n; j += 2 * kPanel) {
    const int64_t columns = product.n - j < 2 * kPanel ? product.n - j : 2 * kPanel;
    Int8Columns left[2];
    for (int64_t t = 0; t * kPanel < columns; ++t) {
      const int64_t rest = columns - t * kPanel;
      left[t].b = product.b + (j + t * kPanel) * product.k;
      left[t].columns = rest < kPanel ? rest : kPanel;
      left[t].k = product.k;
    }
    for (int64_t i = 0; i < product.m; i += 2 * kPanel) {
      const int64_t rows = product.m - i;
      const uint32_t* a = product.a + i / kPanel * product.a_panel;
      const auto tiles = columns > kPanel ? (rows > kPanel ? Int8Tiles<2, 2> : Int8Tiles<2, 1>)
                                          : (rows > kPanel ? Int8Tiles<1, 2> : Int8Tiles<1, 1>);
      tiles(left, a, product.a_panel, product.k, sums[0]);
      for (int64_t t = 0; t * kPanel < columns; ++t) {
        for (int64_t p = 0; p < 2 * kPanel && p < rows; p += kPanel) {
          StoreTurned(sums[t * kPanel] + p, 2 * kPanel, rows - p < kPanel ? rows - p : kPanel,
                      left[t].columns, product.c + (i + p) * product.c_row + j + t * kPanel,
                      product.c_row);
        }
      }
    }
  }
  EndTiles();
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_INT8_H_
