// Products of bfloat16 with AVX512_BF16, which adds the products of a pair to each sum at once.
// Only for kernels/gemm.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_PAIRS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_PAIRS_H_

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/gemm_activation.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/pairs.h"

#if defined(__AVX512F__)

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef uint16_t VecU16 __attribute__((vector_size(2 * kLanes)));

// Bias and activation; the rows of sums are kPairPanels panels.
AOTI_SLIM_BFLOAT16 __attribute__((noinline)) void FinishPairs(const GemmPairs& product,
                                                              const float* sums, int rows) {
  for (int i = 0; i < rows; ++i, sums += kPairPanels * kPanel) {
    for (int j = 0; j < product.columns; j += kPanel) {
      const int left = product.columns - j;
      const __mmask16 lanes = FirstLanes(left < kPanel ? left : kPanel);
      VecF value = Load(sums + j);
      if (product.bias != nullptr) {
        const __m256i bits = _mm256_maskz_loadu_epi16(lanes, product.bias + j);
        value += (VecF)(__builtin_convertvector((VecU16)bits, VecU) << 16);
      }
      value = Activated(product.activation, value);
      _mm256_mask_storeu_epi16(product.c + i * product.c_row + j, lanes,
                               (__m256i)_mm512_cvtneps_pbh((__m512)value));
    }
  }
}

template <int kTileRows, int kPanels>
AOTI_SLIM_BFLOAT16 void PairTile(const GemmPairs& product) {
  __m512 sum[kTileRows][kPanels];
#pragma GCC unroll 14
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  // Three rows share a pointer, so that those of a tile fit into the registers.
  constexpr int kShared = 3;
  const uint16_t* a[(kTileRows + kShared - 1) / kShared];
#pragma GCC unroll 5
  for (int i = 0; i < kTileRows; i += kShared) a[i / kShared] = product.a + i * product.a_row;
  const uint32_t* b = product.b;
  for (int64_t p = product.pairs; p > 0; --p) {
    __m512i row[kPanels];
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) row[v] = _mm512_loadu_si512(b + v * product.b_panel);
#pragma GCC unroll 14
    for (int i = 0; i < kTileRows; ++i) {
      const __m512i factor = SplatPair(a[i / kShared] + i % kShared * product.a_row);
#pragma GCC unroll 2
      for (int v = 0; v < kPanels; ++v) {
        sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)factor, (__m512bh)row[v]);
      }
    }
#pragma GCC unroll 5
    for (int i = 0; i < kTileRows; i += kShared) a[i / kShared] += 2;
    b += kPanel;
  }
  if (product.add) {
#pragma GCC unroll 14
    for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kPanels; ++v) {
        const float* before = product.sums + i * product.sums_row + v * kPanel;
        sum[i][v] = _mm512_add_ps(sum[i][v], _mm512_loadu_ps(before));
      }
    }
  }
  const bool plain = product.bias == nullptr && product.activation == GemmActivation::kNone;
  if (product.c != nullptr && plain) {
#pragma GCC unroll 14
    for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kPanels; ++v) {
        const int left = product.columns - v * kPanel;
        _mm256_mask_storeu_epi16(product.c + i * product.c_row + v * kPanel,
                                 FirstLanes(left < kPanel ? left : kPanel),
                                 (__m256i)_mm512_cvtneps_pbh(sum[i][v]));
      }
    }
    return;
  }
  float finished[kTileRows * kPairPanels * kPanel];
  float* to = product.c != nullptr ? finished : product.sums;
  const int64_t to_row = product.c != nullptr ? kPairPanels * kPanel : product.sums_row;
#pragma GCC unroll 14
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kPanels; ++v) _mm512_storeu_ps(to + i * to_row + v * kPanel, sum[i][v]);
  }
  if (product.c != nullptr) FinishPairs(product, finished, kTileRows);
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
