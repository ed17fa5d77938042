#include "runtime/slim/kernels/gemm.h"

#include "runtime/slim/kernels/gemm_activation.h"
#include "runtime/slim/kernels/gemm_amx.h"
#include "runtime/slim/kernels/gemm_dots.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/gemm_pack.h"
#include "runtime/slim/kernels/gemm_pairs.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int kPanelVectors = kPanel / kLanes;

// Tiles are as large as the registers allow, which hold rows * vectors sums and a part of a row of
// b. Tiles with few rows have more vectors, because a sum can take a new product only about every 4
// cycles.
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
constexpr int kRows = 5;
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

// The number of k between prefetches: a line of the cache has as many numbers of a panel's row.
constexpr int64_t kChunk = 16;

// Whether a tile prefetches its results and the panels that are read next: those with fewer rows
// have too little time for it.
template <typename B>
constexpr bool Prefetches(int rows) {
  return sizeof(B) == sizeof(float) && rows > kRows / 2;
}

void Activate(GemmActivation activation, float* values, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Store(values + i, Activated(activation, Load(values + i)));
  }
  const int rest = static_cast<int>(count - i);
  if (rest > 0) StorePart(values + i, Activated(activation, LoadPart(values + i, rest)), rest);
}

// c = activation(sums + beta * bias), for a tile. The rows of sums are whole vectors.
template <GemmActivation kActivation>
__attribute__((noinline)) void Finish(const GemmTile& tile, const float* sums, int sums_row,
                                      int rows, int columns) {
  const VecF beta = Splat(tile.beta);
  for (int i = 0; i < rows; ++i, sums += sums_row) {
    float* c = tile.c + i * tile.c_row;
    const float* bias = tile.bias == nullptr ? nullptr : tile.bias + i * tile.bias_row;
    int j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      VecF value = Load(sums + j);
      if (bias != nullptr) value += beta * (tile.bias_col == 0 ? Splat(*bias) : Load(bias + j));
      Store(c + j, Activated(kActivation, value));
    }
    if (j == columns) continue;
    VecF value = Load(sums + j);
    if (bias != nullptr) {
      value += beta * (tile.bias_col == 0 ? Splat(*bias) : LoadPart(bias + j, columns - j));
    }
    StorePart(c + j, Activated(kActivation, value), columns - j);
  }
}

template <int kTileRows, int kVectors, typename B, bool kStreams = false>
void Tile(const GemmTile& tile, int columns) {
  VecF sum[kTileRows][kVectors] = {};
  const float* a = tile.a;
  const B* b = static_cast<const B*>(tile.b);
  const int64_t a_step = tile.a_step, b_step = tile.b_step, b_panel = tile.b_panel;
  // What is prefetched is spread over the chunks, so that loads need not wait for it.
  const int64_t touch = kTileRows * kChunk / (tile.k + 1) + 1;
  const int64_t chunk = Prefetches<B>(kTileRows) ? kChunk : tile.k;
  const char* ahead = tile.ahead;
  const char* ahead_end = ahead;
  int64_t touched = 0;  // rows of c that are on their way to the cache
  for (int64_t left = tile.k; left > 0; left -= chunk) {
    if constexpr (Prefetches<B>(kTileRows)) {
      for (ahead_end += kChunk * tile.ahead_step; ahead < ahead_end; ahead += 64) {
        __builtin_prefetch(ahead);
        if constexpr (kVectors > kPanelVectors) {
          __builtin_prefetch(ahead + b_panel * static_cast<int64_t>(sizeof(B)));
        }
      }
      for (const int64_t end = touched + touch; touched < end && touched < kTileRows; ++touched) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v += kPanelVectors) {
          __builtin_prefetch(tile.c + touched * tile.c_row + v * kLanes, 1);
        }
      }
    }
    for (int64_t k = left < chunk ? left : chunk; k > 0; --k) {
      VecF row[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        row[v] = LoadFloats(b + v / kPanelVectors * b_panel + v % kPanelVectors * kLanes);
      }
      // The product takes as long as b takes to be read: from memory, or, in each step of a
      // recurrent layer, from the L2 cache.
      if constexpr (kStreams) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v += kPanelVectors) {
          __builtin_prefetch(b + v / kPanelVectors * b_panel + kStreamAhead / sizeof(B));
        }
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
  }

  const VecF alpha = Splat(tile.alpha);
  constexpr int kColumns = kVectors * kLanes;
  if constexpr (kTileRows > kRows / 2) {
    if (columns == kColumns && tile.bias_col == 1 && tile.bias != nullptr &&
        tile.activation == GemmActivation::kNone) {
      const VecF beta = Splat(tile.beta);
#pragma GCC unroll 16
      for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const VecF added = beta * Load(tile.bias + i * tile.bias_row + v * kLanes);
          Store(tile.c + i * tile.c_row + v * kLanes, Fma(alpha, sum[i][v], added));
        }
      }
      return;
    }
  }
  // Rare cases go through the stack, since they don't justify unrolled code.
  float sums[kTileRows][kColumns];
  const bool direct =
      columns == kColumns && tile.bias == nullptr && tile.activation == GemmActivation::kNone;
  float* to = direct ? tile.c : sums[0];
  const int64_t to_row = direct ? tile.c_row : kColumns;
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) Store(to + i * to_row + v * kLanes, alpha * sum[i][v]);
  }
  if (direct) return;
  switch (tile.activation) {
    case GemmActivation::kNone:
      return Finish<GemmActivation::kNone>(tile, sums[0], kColumns, kTileRows, columns);
    case GemmActivation::kRelu:
      return Finish<GemmActivation::kRelu>(tile, sums[0], kColumns, kTileRows, columns);
    case GemmActivation::kGelu:
      return Finish<GemmActivation::kGelu>(tile, sums[0], kColumns, kTileRows, columns);
  }
}

template <int kTileRows, typename B>
void TileOf(const GemmTile& tile, int columns) {
  constexpr int kWide = WideVectors(kTileRows);
  if constexpr (kTileRows == 1) {
    if (tile.streams && columns > kWide / 2 * kLanes) return Tile<1, kWide, B, true>(tile, columns);
  }
  if (columns <= kNarrow * kLanes) return Tile<kTileRows, kNarrow, B>(tile, columns);
  if constexpr (kTileRows == 1 && kWide / 4 > kNarrow) {
    if (columns <= kWide / 4 * kLanes) return Tile<1, kWide / 4, B>(tile, columns);
  }
  if constexpr (kTileRows == 1 && kWide / 2 > kNarrow) {
    if (columns <= kWide / 2 * kLanes) return Tile<1, kWide / 2, B>(tile, columns);
  }
  Tile<kTileRows, kWide, B>(tile, columns);
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
#if defined(__AVX2__)
    .narrow_sums = {nullptr, Narrow<BFloat16Bits>, Narrow<HalfBits>},
#else
    .narrow_sums = {nullptr, Narrow<BFloat16Bits>, nullptr},
#endif
    .activate = Activate,
#if defined(__AVX512F__)
    .pairs = AnyPairTile<kPairRows>,
    .pair_rows = PairRows,
    .amx = {BeginTiles, EndTiles, AnyAmxTiles, PairColumns, TurnTile},
#else
    .pairs = nullptr,
    .pair_rows = nullptr,
    .amx = {},
#endif
};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
