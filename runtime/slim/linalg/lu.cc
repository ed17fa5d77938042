#include "runtime/slim/linalg/lu.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/triangular.h"

namespace aoti::slim {
namespace {

using std::int64_t;

template <typename T>
int64_t Largest(int64_t size, const T* x) {
  int64_t best = 0;
  for (int64_t i = 1; i < size; ++i) {
    if (Magnitude(x[i]) > Magnitude(x[best])) best = i;
  }
  return best;
}

// Divides the column by the pivot.
template <typename T>
void Scale(int64_t size, T pivot, T* x) {
  if (std::abs(pivot) >= std::numeric_limits<Real<T>>::min()) {
    const T factor = T(1) / pivot;
    for (int64_t i = 0; i < size; ++i) x[i] = Product(x[i], factor);
  } else {
    for (int64_t i = 0; i < size; ++i) x[i] /= pivot;
  }
}

// Factorises a panel of a few columns. Pivots count from 1, within the panel.
template <typename T>
int32_t FactorPanel(const MatrixView<T>& a, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    const int64_t below = a.rows - j - 1;
    const int64_t pivot = j + Largest(below + 1, a.At(j, j));
    pivots[j] = static_cast<int32_t>(pivot + 1);
    if (a(pivot, j) == T(0)) {
      if (info == 0) info = static_cast<int32_t>(j + 1);
      continue;  // the column is 0: nothing to subtract
    }
    if (pivot != j) {
      for (int64_t k = 0; k < a.columns; ++k) std::swap(a(j, k), a(pivot, k));
    }
    if (below == 0) continue;
    Scale(below, a(j, j), a.At(j + 1, j));
    for (int64_t k = j + 1; k < a.columns; ++k) {
      AddColumn(below, -a(j, k), a.At(j + 1, j), a.At(j + 1, k));
    }
  }
  return info;
}

}  // namespace

template <typename T>
void ExchangeRows(const MatrixView<T>& b, const int32_t* pivots, int64_t count,
                  Direction direction) {
  for (int64_t k = 0; k < b.columns; ++k) {
    for (int64_t step = 0; step < count; ++step) {
      const int64_t i = direction == Direction::kForward ? step : count - 1 - step;
      std::swap(b(i, k), b(pivots[i] - 1, k));
    }
  }
}

template <typename T>
int32_t FactorLu(const MatrixView<T>& a, int32_t* pivots) {
  int32_t info = 0;
  const int64_t count = std::min(a.rows, a.columns);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t width = std::min(kBlock, count - first);
    const int64_t height = a.rows - first, right = a.columns - first - width;
    const MatrixView<T> panel = a.Block(first, first, height, width);
    const int32_t zero = FactorPanel(panel, pivots + first);
    if (info == 0 && zero != 0) info = static_cast<int32_t>(first) + zero;
    ExchangeRows(a.Block(first, 0, height, first), pivots + first, width, Direction::kForward);
    const MatrixView<T> rest = a.Block(first, first + width, height, right);
    ExchangeRows(rest, pivots + first, width, Direction::kForward);
    for (int64_t i = first; i < first + width; ++i) pivots[i] += static_cast<int32_t>(first);
    const MatrixView<T> upper = rest.Block(0, 0, width, right);
    SolveTriangular(Triangle::kLower, Diagonal::kOnes, Const(panel.Block(0, 0, width, width)),
                    upper);
    AddProduct(rest.Block(width, 0, height - width, right), -1,
               Const(panel.Block(width, 0, height - width, width)), Const(upper));
  }
  return info;
}

template <typename T>
void SolveLu(const MatrixView<const std::type_identity_t<T>>& lu, const int32_t* pivots,
             const MatrixView<T>& b) {
  ExchangeRows(b, pivots, lu.rows, Direction::kForward);
  SolveTriangular(Triangle::kLower, Diagonal::kOnes, lu, b);
  SolveTriangular(Triangle::kUpper, Diagonal::kOwn, lu, b);
}

template <typename T>
void SolveLuTransposed(const MatrixView<const std::type_identity_t<T>>& lu, const int32_t* pivots,
                       const MatrixView<T>& b) {
  SolveTriangular(Triangle::kLower, Diagonal::kOwn, lu.Transposed(), b);
  SolveTriangular(Triangle::kUpper, Diagonal::kOnes, lu.Transposed(), b);
  ExchangeRows(b, pivots, lu.rows, Direction::kBackward);
}

#define AOTI_INSTANTIATE(T)                                                                \
  template int32_t FactorLu(const MatrixView<T>&, int32_t*);                               \
  template void ExchangeRows(const MatrixView<T>&, const int32_t*, int64_t, Direction);    \
  template void SolveLu(const MatrixView<const T>&, const int32_t*, const MatrixView<T>&); \
  template void SolveLuTransposed(const MatrixView<const T>&, const int32_t*, const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
