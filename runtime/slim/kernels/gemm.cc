#include "runtime/slim/kernels/gemm.h"

#include "runtime/slim/kernels/gemm_dots.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/gemm_pack.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int kPanelVectors = kPanel / kLanes;

// Tiles are as large as the registers allow: rows * vectors sums, and what a row of b needs. Few
// rows get more vectors, as each sum can take a product only every 4 cycles or so.
#if defined(__AVX512F__)
constexpr int kRows = 14;
constexpr int kFewRows = 4;
constexpr int kNarrow = 1;
constexpr int WideVectors(int rows) { return rows == 1 ? 8 : rows <= 6 ? 4 : 2; }
constexpr int64_t kDepth = 512;
#elif defined(__AVX2__)
constexpr int kRows = 6;
constexpr int kFewRows = 4;
constexpr int kNarrow = 2;
constexpr int WideVectors(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }
constexpr int64_t kDepth = 384;
#elif defined(__aarch64__)
constexpr int kRows = 6;
constexpr int kFewRows = 4;
constexpr int kNarrow = 4;
constexpr int WideVectors(int rows) { return rows <= 2 ? 8 : 4; }
constexpr int64_t kDepth = 256;
#else
constexpr int kRows = 4;
constexpr int kFewRows = 4;
constexpr int kNarrow = 2;
constexpr int WideVectors(int rows) { return rows == 1 ? 8 : rows <= 2 ? 4 : 2; }
constexpr int64_t kDepth = 256;
#endif

template <int kTileRows, int kVectors, typename B>
void Tile(const GemmTile& tile, int columns) {
  VecF sum[kTileRows][kVectors] = {};
  const float* a = tile.a;
  const B* b = static_cast<const B*>(tile.b);
  const int64_t a_step = tile.a_step, b_step = tile.b_step, b_panel = tile.b_panel;
  for (int64_t k = tile.k; k > 0; --k) {
    VecF row[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      row[v] = LoadFloats(b + v / kPanelVectors * b_panel + v % kPanelVectors * kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      const VecF factor = Splat(a[i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[i][v] = Fma(factor, row[v], sum[i][v]);
    }
    a += a_step;
    b += b_step;
  }

  const VecF alpha = Splat(tile.alpha), beta = Splat(tile.beta);
  if (columns == kVectors * kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        VecF value = alpha * sum[i][v];
        if (tile.bias != nullptr) {
          const float* bias = tile.bias + i * tile.bias_row;
          value += beta * (tile.bias_col == 0 ? Splat(*bias) : Load(bias + v * kLanes));
        }
        Store(tile.c + i * tile.c_row + v * kLanes, value);
      }
    }
    return;
  }
  float edge[kTileRows][kVectors * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) Store(edge[i] + v * kLanes, alpha * sum[i][v]);
  }
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < columns; ++j) {
      float value = edge[i][j];
      if (tile.bias != nullptr) {
        value += tile.beta * tile.bias[i * tile.bias_row + j * tile.bias_col];
      }
      tile.c[i * tile.c_row + j] = value;
    }
  }
}

template <int kTileRows, typename B>
void TileOf(const GemmTile& tile, int columns) {
  if (columns > kNarrow * kLanes) {
    Tile<kTileRows, WideVectors(kTileRows), B>(tile, columns);
  } else {
    Tile<kTileRows, kNarrow, B>(tile, columns);
  }
}

template <int kMost, typename B>
void AnyTile(const GemmTile& tile, int rows, int columns) {
  if constexpr (kMost > 0) {
    if (rows < kMost) return AnyTile<kMost - 1, B>(tile, rows, columns);
    TileOf<kMost, B>(tile, columns);
  }
}

constexpr unsigned char Wide(int rows) {
  return static_cast<unsigned char>(rows >= 1 && rows <= kRows ? WideVectors(rows) * kLanes : 0);
}

}  // namespace

const GemmKernels kGemm = {
    .rows = kRows,
    .narrow = kNarrow * kLanes,
    .wide = {Wide(0), Wide(1), Wide(2), Wide(3), Wide(4), Wide(5), Wide(6), Wide(7), Wide(8),
             Wide(9), Wide(10), Wide(11), Wide(12), Wide(13), Wide(14), Wide(15)},
    .few_rows = kFewRows,
    .depth = kDepth,
    .tile = {AnyTile<kRows, float>, AnyTile<kFewRows, BFloat16Bits>, AnyTile<kFewRows, HalfBits>},
    .dots = {Dots<float>, Dots<BFloat16Bits>, Dots<HalfBits>},
    .transpose = {Transpose<float>, Transpose<BFloat16Bits>, Transpose<HalfBits>},
    .widen = {Widen<float>, Widen<BFloat16Bits>, Widen<HalfBits>},
};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
