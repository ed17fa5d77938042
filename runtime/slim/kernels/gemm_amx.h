// Products of bfloat16 with AMX, whose tiles hold 16 rows of 64 bytes. Only for kernels/gemm.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_AMX_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_AMX_H_

#include "runtime/slim/kernels/amx_tiles.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/simd.h"
#include "runtime/slim/kernels/transpose.h"

#if defined(__AVX512F__)

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// All tiles have 16 rows of 64 bytes.
constexpr TileShapes kTileShapes = {.palette = 1,
                                    .start_row = 0,
                                    .reserved = {},
                                    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                    .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

void BeginTiles() { ConfigureTiles(kTileShapes); }

void EndTiles() { ReleaseTiles(); }

template <int kTiles, int kPanels>
void AmxTiles(const AmxProduct& product) {
  FinishStores();
  const int64_t row_bytes = product.sums_row * static_cast<int64_t>(sizeof(float));
  float* second = product.sums + kPanel * product.sums_row;
  if (product.add) {
    LoadSums<kTiles, kPanels>(product.sums, second, row_bytes);
  } else {
    ZeroSums<kTiles, kPanels>();
  }
  const uint16_t* left0 = product.left[0];
  const uint16_t* left1 = product.left[1];
  const int64_t row0 = product.left_row[0], row1 = product.left_row[1];
  const uint32_t* right0 = product.right;
  const uint32_t* right1 = product.right + product.right_panel;
  for (int64_t step = product.steps; step > 0; --step) {
    AddStep<kTiles, kPanels>({{left0, row0}, {left1, row1}}, {{right0, 64}, {right1, 64}});
    left0 += kAmxDepth;
    left1 += kAmxDepth;
    right0 += kAmxDepth / 2 * kPanel;
    right1 += kAmxDepth / 2 * kPanel;
  }
  StoreSums<kTiles, kPanels>(product.sums, second, row_bytes);
}

void AnyAmxTiles(const AmxProduct& product, int tiles, int panels) {
  if (panels > 1) return tiles > 1 ? AmxTiles<2, 2>(product) : AmxTiles<1, 2>(product);
  tiles > 1 ? AmxTiles<2, 1>(product) : AmxTiles<1, 1>(product);
}

void PairColumns(const void* source, int64_t from_row, int64_t rows, int64_t depth, uint32_t* to) {
  const uint16_t* from = static_cast<const uint16_t*>(source);
  for (int64_t k = 0; k < depth; k += kAmxDepth, to += kAmxDepth / 2 * kPanel) {
    const int64_t rest = depth - k;
    const __mmask32 there = rest < kAmxDepth ? (__mmask32{1} << rest) - 1 : ~__mmask32{0};
    __m512i block[16];
    for (int i = 0; i < 16; ++i) {
      block[i] = i < rows ? _mm512_maskz_loadu_epi16(there, from + i * from_row + k)
                          : _mm512_setzero_si512();
    }
    TransposeSixteen(block);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kPanel, block[i]);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // defined(__AVX512F__)

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_AMX_H_
