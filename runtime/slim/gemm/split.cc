#include "runtime/slim/gemm/split.h"

namespace aoti::slim {

using std::int64_t;

std::pair<int, int> GridOf(const GemmAny& g, int threads, int64_t row_unit, int64_t column_unit) {
  std::pair<int, int> best{1, threads};
  double least = -1;
  for (int rows = 1; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const int columns = threads / rows;
    const auto part = [](int64_t size, int64_t unit, int64_t parts) {
      return static_cast<double>(CeilDiv(CeilDiv(size, unit), parts) * unit);
    };
    const double m = part(g.m, row_unit, rows), n = part(g.n, column_unit, columns);
    // In units of one product's time: packing an element of a takes about 6; packing one of b takes
    // 8, or fetching it 2.
    const double cost = m * n + 6 * m + (g.packed_b == nullptr ? 8 : 2) * n;
    if (least < 0 || cost < least) {
      least = cost;
      best = {rows, columns};
    }
  }
  return best;
}

}  // namespace aoti::slim
