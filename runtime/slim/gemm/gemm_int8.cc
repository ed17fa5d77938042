#include "runtime/slim/gemm/gemm_int8.h"

#include <algorithm>
#include <cstddef>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {
namespace {

using std::int64_t;
using std::size_t;

// Panels of a that stay in the L2 cache.
constexpr int64_t kPanelBytes = 1 << 20;
// With so many products in it, a float still holds every sum of products of int8 exactly.
constexpr int64_t kExactDepth = 1024;
constexpr int64_t kProductsOfThread = 1 << 17;
// With VNNI and more rows than this, panels of b pay off.
constexpr int64_t kFewRows = 32;
// Panels of b that stay in the L2 cache.
constexpr int64_t kColumnBytes = 1 << 18;
// So many rows justify that another thread makes the same panels.
constexpr int64_t kRowsOfPart = 32;

int64_t GrainOf(int64_t products) {
  return std::max<int64_t>(1, kProductsOfThread / std::max<int64_t>(1, products));
}

const QuantizedKernels& Kernels() {
#if defined(__x86_64__)
  if (CurrentCpuLevel() == CpuLevel::kX86V4 && CurrentCpuHasVnni()) return x86_v4::kQuantizedVnni;
#endif
  return AOTI_SLIM_CURRENT_KERNELS(kQuantized);
}

// The part of a finish from row i and column j on.
Int8Finish From(const Int8Finish& finish, int64_t i, int64_t j) {
  Int8Finish part = finish;
  part.steps += i;
  part.scales += j;
  if (part.bias != nullptr) part.bias += j;
  return part;
}

void Finish(const QuantizedKernels& kernels, const GemmInt8& g, int64_t i, int64_t rows, int64_t j,
            int64_t columns) {
  if (g.finish == nullptr) return;
  kernels.int8_finish(From(*g.finish, i, j), rows, columns, g.c + i * g.c_row + j, g.c_row);
}

void ByPanels(const QuantizedKernels& kernels, const GemmInt8& g) {
  const bool amx = CurrentCpuHasAmxInt8();
  const auto product = amx ? kernels.int8_amx : kernels.int8_product;
  const int64_t panel = Int8PanelSize(g.k);
  const int64_t most = std::max<int64_t>(2, kPanelBytes / (4 * panel) / 2 * 2) * kPanel;
  const int64_t rows = std::min(most, (g.m + kPanel - 1) / kPanel * kPanel);
  Scratch<std::uint32_t> panels(static_cast<size_t>(rows / kPanel * panel));
  for (int64_t i0 = 0; i0 < g.m; i0 += rows) {
    const int64_t m = std::min(rows, g.m - i0);
    const int64_t count = (m + kPanel - 1) / kPanel;
    internal::ParallelFor(0, count, GrainOf(8 * kPanel * g.k), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t i = p * kPanel;
        kernels.int8_fours(g.a + (i0 + i) * g.a_row, g.a_row, std::min<int64_t>(kPanel, m - i), g.k,
                           !amx, panels.data() + p * panel);
      }
    });
    constexpr int64_t kUnit = 2 * kPanel;
    const int64_t units = (g.n + kUnit - 1) / kUnit;
    internal::ParallelFor(0, units, GrainOf(m * g.k * kUnit), [&](int64_t first, int64_t last) {
      const int64_t j = first * kUnit, columns = std::min(last * kUnit, g.n) - j;
      product({.m = m,
               .n = columns,
               .k = g.k,
               .a = panels.data(),
               .a_panel = panel,
               .b = g.b + j * g.k,
               .c = g.c + i0 * g.c_row + j,
               .c_row = g.c_row});
      Finish(kernels, g, i0, m, j, columns);
    });
  }
}

// With VNNI and many rows: columns of b become panels, which all rows then read.
void ByRows(const QuantizedKernels& kernels, const GemmInt8& g) {
  Scratch<std::int32_t> starts(static_cast<size_t>(g.m));
  internal::ParallelFor(0, g.m, GrainOf(g.k), [&](int64_t first, int64_t last) {
    kernels.int8_starts(g.a + first * g.a_row, g.a_row, last - first, g.k, starts.data() + first);
  });
  const int64_t panel = Int8PanelSize(g.k);
  constexpr int64_t kUnit = 4 * kPanel;
  const int64_t units = (g.n + kUnit - 1) / kUnit;
  const int64_t together = std::max<int64_t>(1, kColumnBytes / (4 * panel * (kUnit / kPanel)));
  // A narrow product has too few units for many threads, which then have different rows.
  const int64_t parts = std::clamp<int64_t>(internal::MaxThreads() / units, 1, g.m / kRowsOfPart);
  const int64_t products = g.m / parts * g.k * kUnit;
  internal::ParallelFor(0, parts * units, GrainOf(products), [&](int64_t first, int64_t last) {
    Scratch<std::uint32_t> panels(
        static_cast<size_t>(std::min(together, last - first) * (kUnit / kPanel) * panel));
    while (first < last) {
      const int64_t part = first / units, unit = first % units;
      const int64_t count = std::min({together, last - first, units - unit});
      const int64_t j = unit * kUnit, columns = std::min(count * kUnit, g.n - j);
      for (int64_t at = 0; at < count * kUnit; at += kPanel) {
        kernels.int8_fours(g.b + (j + at) * g.k, g.k, std::clamp<int64_t>(columns - at, 0, kPanel),
                           g.k, true, panels.data() + at / kPanel * panel);
      }
      const int64_t i = g.m * part / parts;
      const Int8Finish finish = g.finish == nullptr ? Int8Finish{} : From(*g.finish, i, j);
      kernels.int8_rows({.m = g.m * (part + 1) / parts - i,
                         .n = columns,
                         .k = g.k,
                         .a = g.a + i * g.a_row,
                         .a_row = g.a_row,
                         .starts = starts.data() + i,
                         .b = panels.data(),
                         .b_panel = panel,
                         .c = g.c + i * g.c_row + j,
                         .c_row = g.c_row,
                         .finish = g.finish == nullptr ? nullptr : &finish});
      first += count;
    }
  });
}

// As products of floats, whose sums are exact.
void ByFloats(const GemmInt8& g) {
  constexpr int64_t kRows = 256, kColumns = 512;
  const int64_t depth = std::min(g.k, kExactDepth);
  Scratch<float> a(static_cast<size_t>(std::min(g.m, kRows) * depth));
  Scratch<float> b(static_cast<size_t>(std::min(g.n, kColumns) * depth));
  Scratch<float> c(static_cast<size_t>(std::min(g.m, kRows) * std::min(g.n, kColumns)));
  const auto widen = [](const std::int8_t* from, int64_t row, int64_t rows, int64_t count,
                        float* to) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * row, count, to + i * count);
  };
  for (int64_t k = 0; k < g.k; k += depth) {
    const int64_t some = std::min(depth, g.k - k);
    for (int64_t j = 0; j < g.n; j += kColumns) {
      const int64_t columns = std::min(kColumns, g.n - j);
      widen(g.b + j * g.k + k, g.k, columns, some, b.data());
      for (int64_t i = 0; i < g.m; i += kRows) {
        const int64_t rows = std::min(kRows, g.m - i);
        widen(g.a + i * g.a_row + k, g.a_row, rows, some, a.data());
        Gemm(GemmF32{.m = rows,
                     .n = columns,
                     .k = some,
                     .a = a.data(),
                     .a_row = some,
                     .a_col = 1,
                     .b = b.data(),
                     .b_row = 1,
                     .b_col = some,
                     .c = c.data(),
                     .c_row = columns});
        for (int64_t r = 0; r < rows; ++r) {
          const float* from = c.data() + r * columns;
          std::int32_t* to = g.c + (i + r) * g.c_row + j;
          for (int64_t at = 0; at < columns; ++at) {
            to[at] = static_cast<std::int32_t>(from[at]) + (k == 0 ? 0 : to[at]);
          }
        }
      }
    }
  }
}

}  // namespace

void Gemm(const GemmInt8& g) {
  if (g.m == 0 || g.n == 0) return;
  const QuantizedKernels& kernels = Kernels();
  if (g.k == 0) {
    for (int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.c_row, g.n, 0);
    return Finish(kernels, g, 0, g.m, 0, g.n);
  }
  if (kernels.int8_product == nullptr) {
    ByFloats(g);
    return internal::ParallelFor(0, g.m, GrainOf(8 * g.n), [&](int64_t first, int64_t last) {
      Finish(kernels, g, first, last - first, 0, g.n);
    });
  }
  return g.m > kFewRows && !CurrentCpuHasAmxInt8() ? ByRows(kernels, g) : ByPanels(kernels, g);
}

}  // namespace aoti::slim
