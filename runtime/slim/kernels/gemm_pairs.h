// Products of bfloat16 with AVX512_BF16, which adds the products of a pair to each sum at once.
// Only for kernels/gemm.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_PAIRS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_PAIRS_H_

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/gemm_load.h"

#if defined(__AVX512F__)

// No level includes this: callers check whether the CPU has it.
#define AOTI_SLIM_BFLOAT16 __attribute__((target("avx512bf16")))

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

template <int kTileRows, int kPanels>
AOTI_SLIM_BFLOAT16 void PairTile(const GemmPairs& product) {
  __m512 sum[kTileRows][kPanels];
#pragma GCC unroll 14
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  const uint32_t* a = product.a;
  const uint32_t* b = product.b;
  for (int64_t p = product.pairs; p > 0; --p) {
    __m512i row[kPanels];
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) row[v] = _mm512_loadu_si512(b + v * product.b_panel);
#pragma GCC unroll 14
    for (int i = 0; i < kTileRows; ++i) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(a[i]));
#pragma GCC unroll 2
      for (int v = 0; v < kPanels; ++v) {
        sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)factor, (__m512bh)row[v]);
      }
    }
    a += product.a_step;
    b += kPanel;
  }
#pragma GCC unroll 14
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) {
      float* c = product.c + i * product.c_row + v * kPanel;
      if (product.add) sum[i][v] = _mm512_add_ps(sum[i][v], _mm512_loadu_ps(c));
      _mm512_storeu_ps(c, sum[i][v]);
    }
  }
}

template <int kMost>
void AnyPairTile(const GemmPairs& product, int rows, int panels) {
  if constexpr (kMost > 0) {
    if (rows < kMost) return AnyPairTile<kMost - 1>(product, rows, panels);
    if (panels == kPairPanels) return PairTile<kMost, kPairPanels>(product);
    PairTile<kMost, 1>(product);
  }
}

inline void PairRows(const void* from, int64_t from_row, int64_t rows, uint32_t* to) {
  const BFloat16Bits* row = static_cast<const BFloat16Bits*>(from);
  for (; rows > 0; rows -= 2, row += 2 * from_row, to += kPanel) {
    VecU pairs = LoadBits16(row);
    if (rows > 1) pairs |= LoadBits16(row + from_row) << 16;
    _mm512_storeu_si512(to, (__m512i)pairs);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // defined(__AVX512F__)

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_PAIRS_H_
