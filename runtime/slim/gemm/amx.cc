// Products of bfloat16 with AMX. One factor, `left`, is read where it lies if it is contiguous
// along k, as a weight of Linear is; the other one, `right`, is copied into panels of pairs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/gemm/pack_pairs.h"
#include "runtime/slim/gemm/parts.h"
#include "runtime/slim/gemm/split.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// The panels of right stay in the L2 cache, and so many numbers of a few rows of left in the L1
// cache.
constexpr int64_t kRightBytes = 1 << 19;
constexpr int64_t kLeftDepth = 640;
constexpr int64_t kLeftRows = 2 * kPanel;

// A factor: its elements are at data + i * row + k * along_k.
struct Factor {
  const std::uint16_t* data;
  int64_t row, along_k;

  const std::uint16_t* At(int64_t i, int64_t k) const { return data + i * row + k * along_k; }
};

// Tiles are configured as long as it lives.
class Tiles {
 public:
  explicit Tiles(const AmxKernels& kernels) : kernels_(kernels) { kernels_.begin(); }
  ~Tiles() { kernels_.end(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

 private:
  const AmxKernels& kernels_;
};

// One thread's part of a product: the rows i0..i1 of left times the rows j0..j1 of right.
class AmxPart {
 public:
  // turned: left is b, not a.
  AmxPart(const GemmAny& gemm, bool turned, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
      : g_(gemm),
        turned_(turned),
        kernels_(CurrentGemmKernels()),
        left_{static_cast<const std::uint16_t*>(gemm.a), gemm.a_row, gemm.a_col},
        right_{static_cast<const std::uint16_t*>(gemm.b), gemm.b_col, gemm.b_row},
        i0_(i0),
        i1_(i1),
        j0_(j0),
        j1_(j1),
        depth_(RoundUp(gemm.k, kAmxDepth)) {
    if (turned) std::swap(left_, right_);
    const int64_t columns = kRightBytes / (2 * depth_) / (2 * kPanel) * (2 * kPanel);
    columns_ = std::min(std::max<int64_t>(columns, 2 * kPanel), RoundUp(j1 - j0, kPanel));
  }

  void Run() {
    Scratch<std::uint32_t> right(static_cast<std::size_t>(columns_ * depth_ / 2));
    Scratch<std::uint16_t> left(static_cast<std::size_t>(kLeftRows * std::min(depth_, kLeftDepth)));
    Scratch<float> sums(static_cast<std::size_t>(kLeftRows * columns_));
    Scratch<float> turned(turned_ ? sums.size() : 0);
    right_pairs_ = right.data();
    copied_left_ = left.data();
    sums_ = sums.data();
    turned_sums_ = turned.data();
    const Tiles tiles(kernels_.amx);
    for (int64_t j = j0_; j < j1_; j += columns_) {
      const int64_t j_end = std::min(j + columns_, j1_);
      for (int64_t at = j; at < j_end; at += kPanel) {
        PackRight(at, std::min<int64_t>(kPanel, j_end - at), right_pairs_ + (at - j) / 2 * depth_);
      }
      for (int64_t i = i0_; i < i1_; i += kLeftRows) {
        const int64_t i_end = std::min(i + kLeftRows, i1_);
        Multiply(i, i_end, CeilDiv(j_end - j, kPanel));
        Finish(i, i_end, j, j_end);
      }
    }
  }

 private:
  // One panel.
  void PackRight(int64_t j, int64_t columns, std::uint32_t* to) {
    if (!turned_ && g_.packed_b != nullptr) {
      const auto* packed = static_cast<const std::uint16_t*>(g_.packed_b);
      kernels_.pair_rows(packed + j * g_.k, kPanel, g_.k, to);
    } else if (right_.along_k == 1) {
      return kernels_.amx.pair_columns(right_.At(j, 0), right_.row, columns, g_.k, to);
    } else if (right_.row == 1 && columns == kPanel) {
      kernels_.pair_rows(right_.At(j, 0), right_.along_k, g_.k, to);
    } else {
      std::fill_n(to, depth_ / 2 * kPanel, 0);
      return CopyPairs(right_.At(j, 0), right_.row, right_.along_k, columns, g_.k, to, kPanel);
    }
    const int64_t pairs = CeilDiv(g_.k, 2);
    std::fill_n(to + pairs * kPanel, (depth_ / 2 - pairs) * kPanel, 0);
  }

  void Multiply(int64_t i, int64_t i_end, int64_t panels) {
    const int64_t whole = g_.k / kAmxDepth * kAmxDepth;
    const int64_t block = RoundUp(CeilDiv(depth_, CeilDiv(depth_, kLeftDepth)), kAmxDepth);
    AmxProduct product = {};
    product.right_panel = kPanel * depth_ / 2;
    product.sums_row = columns_;
    for (int64_t k = 0; k < depth_;) {
      const int64_t end = k < whole ? std::min(k + block, whole) : depth_;
      product.steps = (end - k) / kAmxDepth;
      product.add = k != 0;
      SetLeft(i, i_end, k, end, product);
      const int tiles = static_cast<int>(CeilDiv(i_end - i, kPanel));
      for (int64_t panel = 0; panel < panels; panel += 2) {
        product.right = right_pairs_ + panel * product.right_panel + k / 2 * kPanel;
        product.sums = sums_ + panel * kPanel;
        kernels_.amx.product(product, tiles, panel + 1 < panels ? 2 : 1);
      }
      k = end;
    }
  }

  // Tiles of left that are not in memory as such are copied, with zeros where there is nothing.
  void SetLeft(int64_t i, int64_t i_end, int64_t k, int64_t end, AmxProduct& product) {
    const int64_t depth = std::min(end, g_.k) - k;
    std::uint16_t* to = copied_left_;
    for (int tile = 0; i < i_end; i += kPanel, ++tile) {
      const int64_t rows = std::min<int64_t>(kPanel, i_end - i);
      product.left[tile] = left_.At(i, k);
      product.left_row[tile] = 2 * left_.row;
      if (left_.along_k == 1 && rows == kPanel && depth == end - k) continue;
      product.left[tile] = to;
      product.left_row[tile] = 2 * (end - k);
      std::fill_n(to, kPanel * (end - k), 0);
      for (int64_t row = 0; row < rows; ++row, to += end - k) {
        const std::uint16_t* from = left_.At(i + row, k);
        if (left_.along_k == 1) {
          std::memcpy(to, from, static_cast<std::size_t>(2 * depth));
        } else {
          for (int64_t at = 0; at < depth; ++at) to[at] = from[at * left_.along_k];
        }
      }
      to += (kPanel - rows) * (end - k);
    }
  }

  void Finish(int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
    if (!turned_) return FinishSums(g_, i, i_end, j, j_end, sums_, columns_);
    for (int64_t row = 0; row < i_end - i; row += kPanel) {
      for (int64_t column = 0; column < j_end - j; column += kPanel) {
        kernels_.amx.turn(sums_ + row * columns_ + column, columns_,
                          turned_sums_ + column * kLeftRows + row, kLeftRows);
      }
    }
    FinishSums(g_, j, j_end, i, i_end, turned_sums_, kLeftRows);
  }

  const GemmAny& g_;
  const bool turned_;
  const GemmKernels& kernels_;
  Factor left_, right_;
  const int64_t i0_, i1_, j0_, j1_, depth_;
  int64_t columns_;
  std::uint32_t* right_pairs_ = nullptr;
  std::uint16_t* copied_left_ = nullptr;
  float* sums_ = nullptr;
  float* turned_sums_ = nullptr;
};

// Whether b is better read where it lies than a. In units of the time to copy a pair of numbers
// that are contiguous along k: others take about 8, and turning a sum takes 1.
bool IsTurned(const GemmAny& g) {
  if (g.packed_b != nullptr) return false;
  const int64_t a = g.m * g.k / 2, b = g.n * g.k / 2;
  const int64_t plain = b * (g.b_row == 1 || g.b_col == 1 ? 1 : 8) + (g.a_col == 1 ? 0 : 8 * a);
  const int64_t turned =
      a * (g.a_row == 1 || g.a_col == 1 ? 1 : 8) + (g.b_row == 1 ? 0 : 8 * b) + g.m * g.n;
  return turned < plain;
}

// Whether AMX is faster than other instructions, by measurements on Sapphire Rapids: small products
// do not pay for the tiles' configuration, and few rows not for a copy of the other factor. The
// panels of right have all of k, which is only limited so that they do not get too large.
bool IsWorthwhile(const GemmAny& g) {
  constexpr int64_t kFewRows = 4, kProductsOfFewRows = 1 << 12, kProducts = 1 << 14;
  constexpr int64_t kMostDepth = 1 << 16;
  if (g.k > kMostDepth) return false;
  const int64_t products = g.m * g.n * g.k;
  if (std::min(g.m, g.n) > kFewRows) return products >= kProducts;
  const bool in_place = g.n < g.m ? g.a_col == 1 : g.packed_b == nullptr && g.b_row == 1;
  return in_place && products >= kProductsOfFewRows;
}

}  // namespace

bool CanRunAmx(const GemmAny& g) {
  return g.type == GemmType::kBFloat16 && CurrentGemmKernels().amx.product != nullptr &&
         CurrentCpuHasAmxBFloat16() && IsWorthwhile(g);
}

void RunAmxGemm(const GemmAny& given) {
  // So that rows of the result are contiguous, and long.
  const bool columns = given.c_row == 1 && (given.c_col != 1 || given.n == 1);
  const GemmAny g = columns && given.packed_b == nullptr ? Transposed(given) : given;
  const bool turned = IsTurned(g);
  GemmAny split = g;
  if (turned) std::swap(split.m, split.n);
  const int64_t unit = 2 * kPanel;
  InParts(split, unit, unit, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    AmxPart(g, turned, i0, i1, j0, j1).Run();
  });
}

}  // namespace aoti::slim
