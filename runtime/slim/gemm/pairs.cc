#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/gemm/pack_pairs.h"
#include "runtime/slim/gemm/parts.h"
#include "runtime/slim/gemm/split.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// The block of a stays in the L2 cache, and so does a panel of b.
constexpr int64_t kPairBlockTiles = 10;
constexpr int64_t kPairBlockColumns = 512;
constexpr int64_t kBlockPairs = 512;

// The rows of a tile are not read where they lie if they are apart by a multiple of so many
// numbers: too many of them would share a set of the nearest cache.
constexpr int64_t kConflictingRow = 1024;
// Numbers between copied rows, for the same reason.
constexpr int64_t kRowGap = 32;

// One thread's part of a product.
class PairsPart {
 public:
  PairsPart(const GemmAny& gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
      : g_(gemm), kernels_(CurrentGemmKernels()), i0_(i0), i1_(i1), j0_(j0), j1_(j1) {
    tile_rows_ = CeilDiv(i1 - i0, CeilDiv(i1 - i0, kPairRows));
    in_place_ = g_.a_col == 1 && g_.k % 2 == 0 && g_.a_row % kConflictingRow != 0;
    const bool row = g_.bias == nullptr || (g_.beta == 1 && g_.bias_row == 0 && g_.bias_col == 1);
    narrows_ = g_.c_col == 1 && g_.alpha == 1 && row;
  }

  void Run() {
    const int64_t all_pairs = CeilDiv(g_.k, 2);
    const int64_t k_block = 2 * CeilDiv(all_pairs, CeilDiv(all_pairs, kBlockPairs));
    const int64_t tiles = CeilDiv(i1_ - i0_, tile_rows_);
    const int64_t rows = CeilDiv(tiles, CeilDiv(tiles, kPairBlockTiles)) * tile_rows_;
    const int64_t columns = std::min(j1_ - j0_, kPairBlockColumns);
    sums_row_ = RoundUp(columns, kPanel);
    a_row_ = in_place_ ? g_.a_row : k_block + kRowGap;
    Scratch<std::uint16_t> a(in_place_ ? 0 : static_cast<std::size_t>(rows * a_row_));
    Scratch<std::uint32_t> b(static_cast<std::size_t>(sums_row_ * (k_block / 2)));
    // Whole panels, so that tiles need not know where columns end.
    const bool sums_needed = !narrows_ || k_block < g_.k;
    Scratch<float> sums(sums_needed ? static_cast<std::size_t>((i1_ - i0_) * sums_row_) : 0);
    a_ = a.data();
    b_ = b.data();
    sums_ = sums.data();
    for (int64_t j = j0_; j < j1_; j += columns) {
      const int64_t j_end = std::min(j + columns, j1_);
      for (int64_t k = 0; k < g_.k; k += k_block) {
        const int64_t k_end = std::min(k + k_block, g_.k);
        PackB(j, j_end, k, k_end);
        for (int64_t i = i0_; i < i1_; i += rows) {
          const int64_t i_end = std::min(i + rows, i1_);
          Block(i, i_end, j, j_end, k, k_end);
        }
      }
      if (!narrows_) FinishSums(g_, i0_, i1_, j, j_end, sums_, sums_row_);
    }
  }

 private:
  static const std::uint16_t* At(const void* base, int64_t offset) {
    return static_cast<const std::uint16_t*>(base) + offset;
  }

  // Copies rows of a, and a zero behind an odd number of k.
  void CopyRows(int64_t i, int64_t i_end, int64_t k, int64_t k_end) {
    std::uint16_t* to = a_;
    for (; i < i_end; ++i, to += a_row_) {
      const std::uint16_t* from = At(g_.a, i * g_.a_row + k * g_.a_col);
      if (g_.a_col == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(2 * (k_end - k)));
      } else {
        for (int64_t at = 0; at < k_end - k; ++at) to[at] = from[at * g_.a_col];
      }
      if ((k_end - k) % 2 != 0) to[k_end - k] = 0;
    }
  }

  // Pairs that lie in memory as such are moved like floats.
  void PairColumns(const std::uint16_t* from, int64_t columns, int64_t depth, std::uint32_t* to) {
    const int64_t whole = g_.b_row == 1 && g_.b_col % 2 == 0 ? depth / 2 : 0;
    if (whole > 0) {
      kernels_.transpose[0](from, g_.b_col / 2, columns, whole, reinterpret_cast<float*>(to),
                            kPanel);
    }
    CopyPairs(from + 2 * whole * g_.b_row, g_.b_col, g_.b_row, columns, depth - 2 * whole,
              to + whole * kPanel, kPanel);
  }

  void PackB(int64_t j, int64_t j_end, int64_t k, int64_t k_end) {
    const int64_t depth = k_end - k;
    std::uint32_t* to = b_;
    for (; j < j_end; j += kPanel, to += kPanel * CeilDiv(depth, 2)) {
      const int64_t columns = std::min<int64_t>(kPanel, j_end - j);
      if (g_.packed_b != nullptr) {
        const void* from = At(g_.packed_b, (j / kPanel * g_.k + k) * kPanel);
        kernels_.pair_rows(from, kPanel, depth, to);
        continue;
      }
      const std::uint16_t* from = At(g_.b, k * g_.b_row + j * g_.b_col);
      if (g_.b_col == 1 && columns == kPanel) {
        kernels_.pair_rows(from, g_.b_row, depth, to);
      } else {
        PairColumns(from, columns, depth, to);
      }
    }
  }

  void Block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t k, int64_t k_end) {
    if (!in_place_) CopyRows(i0, i1, k, k_end);
    const std::uint16_t* a = in_place_ ? At(g_.a, i0 * g_.a_row + k) : a_;
    GemmPairs tile = {};
    tile.pairs = CeilDiv(k_end - k, 2);
    tile.a_row = a_row_;
    tile.b_panel = kPanel * tile.pairs;
    tile.sums_row = sums_row_;
    tile.add = k != 0;
    tile.c_row = g_.c_row;
    tile.activation = g_.activation;
    for (int64_t j = j0; j < j1; j += kPairPanels * kPanel) {
      tile.b = b_ + (j - j0) * tile.pairs;
      tile.columns = static_cast<int>(std::min<int64_t>(j1 - j, kPairPanels * kPanel));
      const int panels = j1 - j > kPanel ? kPairPanels : 1;
      for (int64_t i = i0; i < i1; i += tile_rows_) {
        tile.a = a + (i - i0) * a_row_;
        if (sums_ != nullptr) tile.sums = sums_ + (i - i0_) * sums_row_ + (j - j0);
        if (narrows_ && k_end == g_.k) {
          tile.c = static_cast<std::uint16_t*>(g_.c) + i * g_.c_row + j;
          tile.bias = g_.bias == nullptr ? nullptr : At(g_.bias, j);
        }
        kernels_.pairs(tile, static_cast<int>(std::min(tile_rows_, i1 - i)), panels);
      }
    }
  }

  const GemmAny& g_;
  const GemmKernels& kernels_;
  const int64_t i0_, i1_, j0_, j1_;
  int64_t tile_rows_, a_row_ = 0, sums_row_ = 0;
  bool in_place_;  // the rows of a are read where they lie
  bool narrows_;   // tiles write the result
  std::uint16_t* a_ = nullptr;
  std::uint32_t* b_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace

bool CanRunPairs(const GemmAny& g) {
  return g.type == GemmType::kBFloat16 && CurrentGemmKernels().pairs != nullptr &&
         CurrentCpuMultipliesPairs();
}

void RunPairsGemm(const GemmAny& g) {
  const int64_t row_unit = std::min<int64_t>(g.m, kPairRows);
  const int64_t column_unit = RoundUp(std::min<int64_t>(kPairPanels * kPanel, g.n), kPanel);
  InParts(g, row_unit, column_unit, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    PairsPart(g, i0, i1, j0, j1).Run();
  });
}

}  // namespace aoti::slim
