#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/slim/gemm/parts.h"
#include "runtime/slim/gemm/split.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// Rows of a block of a, in tiles. The block and a panel of b stay in the L2 cache.
constexpr int64_t kBlockTiles = 16;
// Columns of a block of b that must be packed.
constexpr int64_t kBlockColumns = 512;

// One thread's part of a product that is computed in tiles.
class TiledPart {
 public:
  TiledPart(const GemmAny& gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
      : g_(gemm),
        kernels_(CurrentGemmKernels()),
        type_(static_cast<int>(gemm.type)),
        i0_(i0),
        i1_(i1),
        j0_(j0),
        j1_(j1),
        few_(gemm.m <= kernels_.few_rows),
        // If b is read only once, the block need not fit into the caches.
        depth_(gemm.m <= kernels_.rows ? 8 * kernels_.depth : kernels_.depth),
        direct_c_(WritesSumsToC(gemm)) {
    if (gemm.packed_b != nullptr) {
      source_ = gemm.type == GemmType::kFloat || few_ ? Source::kPacked : Source::kWiden;
    } else if (gemm.type == GemmType::kFloat && gemm.b_col == 1 && i1 - i0 <= 2 * kernels_.rows) {
      source_ = Source::kRows;
    } else {
      source_ = Source::kPack;
    }
    tile_rows_ = CeilDiv(i1 - i0, CeilDiv(i1 - i0, kernels_.rows));
  }

  void Run() {
    const int64_t k_block = CeilDiv(g_.k, CeilDiv(g_.k, depth_));
    const int64_t tiles = CeilDiv(i1_ - i0_, tile_rows_);
    const int64_t rows = CeilDiv(tiles, CeilDiv(tiles, kBlockTiles)) * tile_rows_;
    const bool block_b = source_ == Source::kPack || source_ == Source::kWiden;
    int64_t columns = j1_ - j0_;
    if (block_b || !direct_c_) columns = std::min(columns, kBlockColumns);
    const int64_t padded = RoundUp(columns, kPanel);

    a_step_ = tile_rows_ == 1 ? 1 : RoundUp(tile_rows_, 4);
    // A single row, or contiguous columns, are read in place if they are not read often.
    direct_a_ = g_.type == GemmType::kFloat &&
                (tile_rows_ == 1 || (g_.a_row == 1 && j1_ - j0_ <= 2 * kBlockColumns));
    Scratch<float> a(
        direct_a_ ? 0 : static_cast<std::size_t>(CeilDiv(rows, tile_rows_) * a_step_ * k_block));
    // If b has no block of its own here, its last columns have one.
    Scratch<float> b(source_ == Source::kPacked
                         ? 0
                         : static_cast<std::size_t>((block_b ? padded : kPanel) * k_block));
    Scratch<float> c(direct_c_ ? 0 : static_cast<std::size_t>((i1_ - i0_) * padded));
    a_ = a.data();
    b_ = b.data();
    c_ = c.data();
    for (int64_t j = j0_; j < j1_; j += columns) {
      const int64_t j_end = std::min(j + columns, j1_);
      c_row_ = direct_c_ ? g_.c_row : padded;
      for (int64_t k = 0; k < g_.k; k += k_block) {
        const int64_t k_end = std::min(k + k_block, g_.k);
        if (block_b) PackB(j, j_end, k, k_end);
        if (source_ == Source::kRows && j_end % kPanel != 0) {
          PackB(j_end / kPanel * kPanel, j_end, k, k_end);
        }
        for (int64_t i = i0_; i < i1_; i += rows) {
          const int64_t i_end = std::min(i + rows, i1_);
          if (!direct_a_) PackA(i, i_end, k, k_end);
          Block(i, i_end, j, j_end, k, k_end);
        }
      }
      if (!direct_c_) FinishSums(g_, i0_, i1_, j, j_end, c_, c_row_);
    }
  }

 private:
  enum class Source {
    kPacked,  // the caller's panels
    kRows,    // the caller's rows, except for the last columns
    kPack,    // panels in b_, from the caller's b
    kWiden,   // panels in b_, from the caller's panels of 16-bit numbers
  };

  void PackA(int64_t i, int64_t i_end, int64_t k, int64_t k_end) {
    float* to = a_;
    for (; i < i_end; i += tile_rows_) {
      const int64_t rows = std::min(tile_rows_, i_end - i);
      const void* from = GemmAt(g_.type, g_.a, i * g_.a_row + k * g_.a_col);
      if (g_.a_col == 1) {
        kernels_.transpose[type_](from, g_.a_row, rows, k_end - k, to, a_step_);
      } else {
        CopyAsFloat(g_.type, from, g_.a_col, g_.a_row, k_end - k, rows, to, a_step_, 1);
      }
      to += a_step_ * (k_end - k);
    }
  }

  void PackB(int64_t j, int64_t j_end, int64_t k, int64_t k_end) {
    const int64_t depth = k_end - k;
    float* to = b_;
    for (; j < j_end; j += kPanel, to += kPanel * depth) {
      if (source_ == Source::kWiden) {
        const void* from = GemmAt(g_.type, g_.packed_b, (j / kPanel * g_.k + k) * kPanel);
        kernels_.widen[type_](from, kPanel, depth, to);
        continue;
      }
      const int64_t columns = std::min<int64_t>(kPanel, j_end - j);
      const void* from = GemmAt(g_.type, g_.b, k * g_.b_row + j * g_.b_col);
      if (g_.b_col == 1 && columns == kPanel) {
        kernels_.widen[type_](from, g_.b_row, depth, to);
        continue;
      }
      if (g_.b_row == 1) {
        kernels_.transpose[type_](from, g_.b_col, columns, depth, to, kPanel);
      } else {
        CopyAsFloat(g_.type, from, g_.b_row, g_.b_col, depth, columns, to, kPanel, 1);
      }
    }
  }

  // Adds the product of a block of a and a block of b to c.
  void Block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t k0, int64_t k1) {
    const int64_t depth = k1 - k0;
    const bool first = k0 == 0;
    const bool narrow_numbers = source_ == Source::kPacked && g_.type != GemmType::kFloat;
    const GemmTileFunction function = kernels_.tile[narrow_numbers ? type_ : 0];
    const int64_t whole = j0 + (j1 - j0) / kPanel * kPanel;
    GemmTile tile = {};
    tile.k = depth;
    tile.a_step = direct_a_ ? g_.a_col : a_step_;
    tile.c_row = c_row_;
    tile.alpha = direct_c_ ? g_.alpha : 1;
    tile.streams = source_ == Source::kPacked && StreamsB(g_);
    if (direct_c_ && k1 == g_.k) tile.activation = g_.activation;
    for (int64_t j = j0; j < j1;) {
      int64_t columns = kernels_.wide[tile_rows_];
      const int64_t limit = source_ == Source::kRows ? whole : j1;
      if (j + columns > limit) columns = NarrowerThan(columns, limit - j);
      SetB(tile, j, j0, whole, k0, depth);
      const int64_t width = std::min(columns, j1 - j);
      // The tiles share out the panels behind these ones.
      const int64_t tiles = CeilDiv(i1 - i0, tile_rows_);
      const int64_t panels = CeilDiv(width, kPanel);
      const auto* b = static_cast<const char*>(tile.b);
      tile.ahead = b;
      tile.ahead_step = 0;
      if (source_ == Source::kPacked && tiles > 1) {
        tile.ahead = b + panels * tile.b_panel * static_cast<int64_t>(sizeof(float));
        tile.ahead_step = CeilDiv(kPanel * static_cast<int64_t>(sizeof(float)), tiles);
      }
      for (int64_t i = i0; i < i1; i += tile_rows_) {
        const int64_t rows = std::min(tile_rows_, i1 - i);
        if (direct_a_) {
          tile.a = static_cast<const float*>(g_.a) + i * g_.a_row + k0 * g_.a_col;
        } else {
          tile.a = a_ + (i - i0) / tile_rows_ * a_step_ * depth;
        }
        SetC(tile, i, j, j0, first);
        if (!Fits(rows, width)) {
          // The last rows, for which tiles have another width.
          Remainder(tile, static_cast<int>(rows), width, function);
        } else {
          function(tile, static_cast<int>(rows), static_cast<int>(width));
        }
        tile.ahead += depth * tile.ahead_step;
      }
      j += width;
    }
  }

  // Whether there is a tile of this size.
  bool Fits(int64_t rows, int64_t width) const {
    const int64_t wide = kernels_.wide[rows];
    if (width <= kernels_.narrow || width == wide) return true;
    return rows == 1 && (2 * width == wide || 4 * width == wide);
  }

  // The columns of a tile where `left` columns, less than the `wide` ones of a whole tile, are
  // left.
  int64_t NarrowerThan(int64_t wide, int64_t left) const {
    for (int64_t width : {wide / 2, wide / 4}) {
      if (width <= left && Fits(tile_rows_, width))
        return std::max<int64_t>(width, kernels_.narrow);
    }
    return kernels_.narrow;
  }

  // `width` columns of a tile whose rows have another width: one width divides the other.
  void Remainder(GemmTile tile, int rows, int64_t width, GemmTileFunction function) const {
    const int64_t step = std::min<int64_t>(kernels_.wide[rows], width) == width
                             ? kernels_.narrow
                             : kernels_.wide[rows];
    const std::byte* b = static_cast<const std::byte*>(tile.b);
    const bool narrow_numbers = source_ == Source::kPacked && g_.type != GemmType::kFloat;
    const int64_t size = narrow_numbers ? 2 : 4;
    for (int64_t j = 0; j < width; j += step) {
      tile.b = b + (j / kPanel * tile.b_panel + j % kPanel) * size;
      function(tile, rows, static_cast<int>(step));
      tile.c += step;
      if (tile.bias != nullptr) tile.bias += step * tile.bias_col;
    }
  }

  void SetB(GemmTile& tile, int64_t j, int64_t j0, int64_t whole, int64_t k0, int64_t depth) const {
    tile.b_step = kPanel;
    const int64_t in_panel = j % kPanel;
    switch (source_) {
      case Source::kPacked:
        tile.b_panel = g_.k * kPanel;
        tile.b = GemmAt(g_.type, g_.packed_b, (j / kPanel * g_.k + k0) * kPanel + in_panel);
        return;
      case Source::kRows:
        if (j < whole) {
          tile.b_step = g_.b_row;
          tile.b_panel = kPanel;
          tile.b = static_cast<const float*>(g_.b) + k0 * g_.b_row + j;
        } else {
          tile.b_panel = 0;
          tile.b = b_ + (j - whole);
        }
        return;
      default:
        tile.b_panel = depth * kPanel;
        tile.b = b_ + (j - j0) / kPanel * depth * kPanel + (j - j0) % kPanel;
        return;
    }
  }

  void SetC(GemmTile& tile, int64_t i, int64_t j, int64_t j0, bool first) const {
    if (!direct_c_) {
      tile.c = c_ + (i - i0_) * c_row_ + (j - j0);
    } else {
      tile.c = static_cast<float*>(g_.c) + i * g_.c_row + j;
    }
    tile.bias = nullptr;
    if (!first) {
      tile.beta = 1;
      tile.bias = tile.c;
      tile.bias_row = c_row_;
      tile.bias_col = 1;
    } else if (direct_c_ && g_.bias != nullptr) {
      tile.beta = g_.beta;
      tile.bias = static_cast<const float*>(g_.bias) + i * g_.bias_row + j * g_.bias_col;
      tile.bias_row = g_.bias_row;
      tile.bias_col = g_.bias_col;
    }
  }

  const GemmAny& g_;
  const GemmKernels& kernels_;
  const int type_;
  const int64_t i0_, i1_, j0_, j1_;
  const bool few_;
  const int64_t depth_;
  const bool direct_c_;
  Source source_;
  bool direct_a_ = false;
  int64_t tile_rows_, a_step_ = 0, c_row_ = 0;
  float* a_ = nullptr;
  float* b_ = nullptr;
  float* c_ = nullptr;
};

}  // namespace

void RunTiledGemm(const GemmAny& g) {
  const GemmKernels& kernels = CurrentGemmKernels();
  const int64_t row_unit = std::min<int64_t>(g.m, kernels.rows);
  // A single row has tiles of any number of panels.
  const int64_t tile = g.m == 1 ? 2 * kPanel : kernels.wide[row_unit];
  const int64_t column_unit = RoundUp(std::min<int64_t>(tile, g.n), kPanel);
  InParts(g, row_unit, column_unit, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    TiledPart(g, i0, i1, j0, j1).Run();
  });
}

}  // namespace aoti::slim
