// Splits a product among threads. Private to this folder.

#ifndef AOTI_RUNTIME_SLIM_GEMM_SPLIT_H_
#define AOTI_RUNTIME_SLIM_GEMM_SPLIT_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/core/parallel.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/gemm/parts.h"
#include "runtime/slim/kernels/rounding.h"

namespace aoti::slim {

// The threads among which rows, and those among which columns are split: so that the parts are
// equal and little is packed twice.
std::pair<int, int> GridOf(const GemmAny& g, int threads, std::int64_t row_unit,
                           std::int64_t column_unit);

// Calls part(i0, i1, j0, j1) for parts of c that begin at multiples of the units, each on a thread.
template <typename Part>
void InParts(const GemmAny& g, std::int64_t row_unit, std::int64_t column_unit, const Part& part) {
  const int wanted = static_cast<int>(std::clamp<std::int64_t>(
      g.m * g.n * g.k / ProductsPerThread(g.m), 1, internal::MaxThreads()));
  if (wanted == 1) return part(0, g.m, 0, g.n);
  internal::Parallel(wanted, [&](int thread, int threads) {
    const auto [rows, columns] = GridOf(g, threads, row_unit, column_unit);
    const auto border = [](std::int64_t size, std::int64_t unit, std::int64_t at,
                           std::int64_t parts) {
      return std::min(size, CeilDiv(size, unit) * at / parts * unit);
    };
    const int row = thread / columns, column = thread % columns;
    const std::int64_t i0 = border(g.m, row_unit, row, rows);
    const std::int64_t i1 = border(g.m, row_unit, row + 1, rows);
    const std::int64_t j0 = border(g.n, column_unit, column, columns);
    const std::int64_t j1 = border(g.n, column_unit, column + 1, columns);
    if (i0 < i1 && j0 < j1) part(i0, i1, j0, j1);
  });
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_SPLIT_H_
