#include <algorithm>
#include <cstddef>
#include <cstdint>

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

// One thread's part of a product.
class PairsPart {
 public:
  PairsPart(const GemmAny& gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
      : g_(gemm), kernels_(CurrentGemmKernels()), i0_(i0), i1_(i1), j0_(j0), j1_(j1) {
    tile_rows_ = CeilDiv(i1 - i0, CeilDiv(i1 - i0, kPairRows));
    a_step_ = RoundUp(tile_rows_, 4);
  }

  void Run() {
    const int64_t all_pairs = CeilDiv(g_.k, 2);
    const int64_t k_block = 2 * CeilDiv(all_pairs, CeilDiv(all_pairs, kBlockPairs));
    const int64_t tiles = CeilDiv(i1_ - i0_, tile_rows_);
    const int64_t rows = CeilDiv(tiles, CeilDiv(tiles, kPairBlockTiles)) * tile_rows_;
    const int64_t columns = std::min(j1_ - j0_, kPairBlockColumns);
    c_row_ = RoundUp(columns, kPanel);
    Scratch<std::uint32_t> a(
        static_cast<std::size_t>(CeilDiv(rows, tile_rows_) * a_step_ * (k_block / 2)));
    Scratch<std::uint32_t> b(static_cast<std::size_t>(c_row_ * (k_block / 2)));
    // Whole panels, so that tiles need not know where columns end.
    Scratch<float> c(static_cast<std::size_t>((i1_ - i0_) * c_row_));
    a_ = a.data();
    b_ = b.data();
    c_ = c.data();
    for (int64_t j = j0_; j < j1_; j += columns) {
      const int64_t j_end = std::min(j + columns, j1_);
      for (int64_t k = 0; k < g_.k; k += k_block) {
        const int64_t k_end = std::min(k + k_block, g_.k);
        PackB(j, j_end, k, k_end);
        for (int64_t i = i0_; i < i1_; i += rows) {
          const int64_t i_end = std::min(i + rows, i1_);
          PackA(i, i_end, k, k_end);
          Block(i, i_end, j, j_end, CeilDiv(k_end - k, 2), k != 0);
        }
      }
      FinishSums(g_, i0_, i1_, j, j_end, c_, c_row_);
    }
  }

 private:
  static const std::uint16_t* At(const void* base, int64_t offset) {
    return static_cast<const std::uint16_t*>(base) + offset;
  }

  // Pairs that lie in memory as such are moved like floats.
  void Pack(const std::uint16_t* from, int64_t row, int64_t column, int64_t rows, int64_t depth,
            std::uint32_t* to, int64_t to_step) {
    const int64_t whole = column == 1 && row % 2 == 0 ? depth / 2 : 0;
    if (whole > 0) {
      kernels_.transpose[0](from, row / 2, rows, whole, reinterpret_cast<float*>(to), to_step);
    }
    CopyPairs(from + 2 * whole * column, row, column, rows, depth - 2 * whole, to + whole * to_step,
              to_step);
  }

  void PackA(int64_t i, int64_t i_end, int64_t k, int64_t k_end) {
    std::uint32_t* to = a_;
    for (; i < i_end; i += tile_rows_, to += a_step_ * CeilDiv(k_end - k, 2)) {
      Pack(At(g_.a, i * g_.a_row + k * g_.a_col), g_.a_row, g_.a_col,
           std::min(tile_rows_, i_end - i), k_end - k, to, a_step_);
    }
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
        Pack(from, g_.b_col, g_.b_row, columns, depth, to, kPanel);
      }
    }
  }

  void Block(int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t pairs, bool add) {
    GemmPairs tile = {};
    tile.pairs = pairs;
    tile.a_step = a_step_;
    tile.b_panel = kPanel * pairs;
    tile.c_row = c_row_;
    tile.add = add;
    for (int64_t j = j0; j < j1; j += kPairPanels * kPanel) {
      tile.b = b_ + (j - j0) * pairs;
      const int panels = j1 - j > kPanel ? kPairPanels : 1;
      for (int64_t i = i0; i < i1; i += tile_rows_) {
        tile.a = a_ + (i - i0) / tile_rows_ * a_step_ * pairs;
        tile.c = c_ + (i - i0_) * c_row_ + (j - j0);
        kernels_.pairs(tile, static_cast<int>(std::min(tile_rows_, i1 - i)), panels);
      }
    }
  }

  const GemmAny& g_;
  const GemmKernels& kernels_;
  const int64_t i0_, i1_, j0_, j1_;
  int64_t tile_rows_, a_step_, c_row_ = 0;
  std::uint32_t* a_ = nullptr;
  std::uint32_t* b_ = nullptr;
  float* c_ = nullptr;
};

}  // namespace

bool CanRunPairs(const GemmAny& g) {
  return g.type == GemmType::kBFloat16 && CurrentGemmKernels().pairs != nullptr &&
         CurrentCpuHasBFloat16();
}

void RunPairsGemm(const GemmAny& g) {
  const int64_t row_unit = std::min<int64_t>(g.m, kPairRows);
  const int64_t column_unit = RoundUp(std::min<int64_t>(kPairPanels * kPanel, g.n), kPanel);
  InParts(g, row_unit, column_unit, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    PairsPart(g, i0, i1, j0, j1).Run();
  });
}

}  // namespace aoti::slim
