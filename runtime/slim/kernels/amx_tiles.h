// The instructions of AMX, whose tiles hold at most 16 rows of 64 bytes.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_AMX_TILES_H_
#define AOTI_RUNTIME_SLIM_KERNELS_AMX_TILES_H_

#include <stdint.h>

#if defined(__AVX512F__)

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// They are written as assembly, because compilers' intrinsics take no tile's number from a
// template, and some of them do not say which memory they read.

// Tiles 0 to 3 are sums, 4 and 5 are right, 6 and 7 are left.
constexpr int kFirstRight = 4, kFirstLeft = 6;

template <int kTile>
inline void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kTile>
inline void LoadTile(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(kTile));
}

template <int kTile>
inline void StoreTile(float* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}

// sums += left * right, of pairs of bfloat16.
template <int kSums, int kLeft, int kRight>
inline void AddTileProduct() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kLeft), "i"(kRight));
}

// What was written before must be in memory when tiles are loaded.
inline void FinishStores() { asm volatile("" ::: "memory"); }

// 1 or 2 tiles of left are multiplied with 1 or 2 panels of right: the sums of tile i and panel j
// are in tile 2 * i + j. In memory, a panel has so many floats.
constexpr int kSumColumns = 16;

template <int kTiles, int kPanels>
inline void ZeroSums() {
  ZeroTile<0>();
  if constexpr (kPanels > 1) ZeroTile<1>();
  if constexpr (kTiles > 1) ZeroTile<2>();
  if constexpr (kTiles > 1 && kPanels > 1) ZeroTile<3>();
}

// first, second: the sums of each tile of left.
template <int kTiles, int kPanels>
inline void LoadSums(const float* first, const float* second, int64_t row_bytes) {
  LoadTile<0>(first, row_bytes);
  if constexpr (kPanels > 1) LoadTile<1>(first + kSumColumns, row_bytes);
  if constexpr (kTiles > 1) LoadTile<2>(second, row_bytes);
  if constexpr (kTiles > 1 && kPanels > 1) LoadTile<3>(second + kSumColumns, row_bytes);
}

template <int kTiles, int kPanels>
inline void StoreSums(float* first, float* second, int64_t row_bytes) {
  StoreTile<0>(first, row_bytes);
  if constexpr (kPanels > 1) StoreTile<1>(first + kSumColumns, row_bytes);
  if constexpr (kTiles > 1) StoreTile<2>(second, row_bytes);
  if constexpr (kTiles > 1 && kPanels > 1) StoreTile<3>(second + kSumColumns, row_bytes);
}

// Rows of a factor, `step` bytes apart.
struct TileRows {
  const void* first;
  int64_t step;
};

// Adds the products of one step of pairs of bfloat16.
template <int kTiles, int kPanels>
inline void AddStep(const TileRows (&left)[2], const TileRows (&right)[2]) {
  LoadTile<kFirstRight>(right[0].first, right[0].step);
  LoadTile<kFirstLeft>(left[0].first, left[0].step);
  AddTileProduct<0, kFirstLeft, kFirstRight>();
  if constexpr (kPanels > 1) {
    LoadTile<kFirstRight + 1>(right[1].first, right[1].step);
    AddTileProduct<1, kFirstLeft, kFirstRight + 1>();
  }
  if constexpr (kTiles > 1) {
    LoadTile<kFirstLeft + 1>(left[1].first, left[1].step);
    AddTileProduct<2, kFirstLeft + 1, kFirstRight>();
    if constexpr (kPanels > 1) AddTileProduct<3, kFirstLeft + 1, kFirstRight + 1>();
  }
}

struct TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileShapes) == 64);

// All tiles are zeros afterwards.
inline void ConfigureTiles(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }

inline void ReleaseTiles() { asm volatile("tilerelease"); }

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // defined(__AVX512F__)

#endif  // AOTI_RUNTIME_SLIM_KERNELS_AMX_TILES_H_
