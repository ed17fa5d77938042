#include "runtime/slim/gemm/gemm.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/core/float_settings.h"
#include "runtime/core/parallel.h"
#include "runtime/slim/gemm/parts.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// Up to this number of rows, dot products with contiguous rows of b are faster than packing b for
// tiles.
constexpr int64_t kDotsRows = 32;

// Up to this number of columns, the same holds for rows of a. If these are short, sums over the
// lanes of vectors take most of the time of a dot product.
constexpr int64_t DotsColumns(int64_t k) {
  return k < 512 ? std::clamp<int64_t>(k / 16, 3, 12) : kDotsRows;
}

// Up to this number of rows, products of bfloat16 are not worth pairing the numbers of b.
constexpr int64_t kFewRowsOfPairs = 4;

// A product of fewer takes not much longer than to change what subnormal numbers are.
constexpr int64_t kProductsOfSubnormals = 1 << 14;

void RunDots(const GemmAny& g) {
  const GemmKernels& kernels = CurrentGemmKernels();
  const bool copy = g.type != GemmType::kFloat || (g.a_col != 1 && g.k > 1);
  Scratch<float> copied(copy ? static_cast<std::size_t>(g.m * g.k) : 0);
  if (copy) CopyAsFloat(g.type, g.a, g.a_row, g.a_col, g.m, g.k, copied.data(), g.k, 1);
  const bool direct = WritesSumsToC(g) && g.alpha == 1 && g.bias == nullptr;
  const int64_t grain = std::max<int64_t>(1, ProductsPerThread(g.m) / (g.m * g.k));
  internal::ParallelFor(0, CeilDiv(g.n, 4), CeilDiv(grain, 4), [&](int64_t first, int64_t last) {
    const int64_t end = std::min(last * 4, g.n);
    const int64_t chunk = std::min<int64_t>(g.m == 1 ? kStreamedColumns : 256, end - first * 4);
    Scratch<float> sums(direct ? 0 : static_cast<std::size_t>(g.m * chunk));
    for (int64_t j = first * 4; j < end; j += chunk) {
      const int64_t columns = std::min(chunk, end - j);
      const GemmDots dots = {.m = g.m,
                             .n = columns,
                             .k = g.k,
                             .a = copy ? copied.data() : static_cast<const float*>(g.a),
                             .a_row = copy ? g.k : g.a_row,
                             .b = GemmAt(g.type, g.b, j * g.b_col),
                             .b_row = g.b_col,
                             .c = direct ? static_cast<float*>(g.c) + j : sums.data(),
                             .c_row = direct ? g.c_row : columns,
                             .streams = StreamsB(g)};
      kernels.dots[static_cast<int>(g.type)](dots);
      if (!direct) FinishSums(g, 0, g.m, j, j + columns, sums.data(), columns);
    }
  });
}

// Whether sums are finished with their activation: 16-bit numbers always are, others if the product
// goes to RunTiledGemm(), and that to c.
bool ActivatesSums(const GemmAny& g) {
  if (g.type != GemmType::kFloat) return true;
  return g.packed_b != nullptr && WritesSumsToC(g) && g.k != 0 && g.alpha != 0;
}

void Activate(const GemmAny& g) {
  const ActivateFunction activate = CurrentGemmKernels().activate;
  const int64_t grain = (1 << 14) / std::max<int64_t>(1, g.n) + 1;
  internal::ParallelFor(0, g.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      activate(g.activation, static_cast<float*>(g.c) + i * g.c_row, g.n);
    }
  });
}

void RunWithoutAmx(GemmAny g) {
  const bool thin = g.n < g.m && g.n <= DotsColumns(g.k) && g.m > kDotsRows;
  // If there are few columns but not few rows, or if columns of the results are contiguous.
  if (g.packed_b == nullptr && (thin || (g.c_col != 1 && g.c_row == 1 && g.m > kDotsRows))) {
    g = Transposed(g);
  }
  if (g.m > kFewRowsOfPairs && CanRunPairs(g)) return RunPairsGemm(g);
  if (g.packed_b == nullptr) {
    const bool along_k = g.b_row == 1 || g.k == 1;
    if (g.m <= kDotsRows && along_k && g.b_col != 1) return RunDots(g);
  }
  RunTiledGemm(g);
}

}  // namespace

GemmAny Transposed(const GemmAny& g) {
  GemmAny t = g;
  std::swap(t.m, t.n);
  t.a = g.b;
  t.a_row = g.b_col;
  t.a_col = g.b_row;
  t.b = g.a;
  t.b_row = g.a_col;
  t.b_col = g.a_row;
  std::swap(t.c_row, t.c_col);
  std::swap(t.bias_row, t.bias_col);
  return t;
}

void Gemm(const GemmAny& gemm) {
  GemmAny g = gemm;
  if (g.activation != GemmActivation::kNone && !ActivatesSums(g)) {
    g.activation = GemmActivation::kNone;
    Gemm(g);
    return Activate(gemm);
  }
  if (g.m == 0 || g.n == 0) return;
  if (g.beta == 0) g.bias = nullptr;
  if (g.k == 0 || g.alpha == 0) return FinishSums(g, 0, g.m, 0, g.n, nullptr, 0);
  if (CanRunAmx(g)) return RunAmxGemm(g);
  if (g.type != GemmType::kFloat || g.m * g.n * g.k < kProductsOfSubnormals) {
    return RunWithoutAmx(g);
  }
  const internal::WithoutSubnormals scope;
  RunWithoutAmx(g);
}

void Gemm(const GemmF32& f) {
  Gemm(GemmAny{.type = GemmType::kFloat,
               .m = f.m,
               .n = f.n,
               .k = f.k,
               .a = f.a,
               .a_row = f.a_row,
               .a_col = f.a_col,
               .b = f.b,
               .b_row = f.b_row,
               .b_col = f.b_col,
               .packed_b = f.packed_b,
               .c = f.c,
               .c_row = f.c_row,
               .c_col = f.c_col,
               .alpha = f.alpha,
               .beta = f.beta,
               .bias = f.bias,
               .bias_row = f.bias_row,
               .bias_col = f.bias_col});
}

}  // namespace aoti::slim
