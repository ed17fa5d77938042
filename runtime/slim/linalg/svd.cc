#include "runtime/slim/linalg/svd.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/qr.h"

namespace aoti::slim {
namespace {

using std::int64_t;

constexpr int kMostSweeps = 60;  // about ten are usual

// The power of two that brings the largest number near 1, or 0 where they are not all finite.
template <typename T>
Real<T> ScaleOf(const MatrixView<T>& a) {
  if (!IsFinite(a)) return 0;
  Real<T> most = 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      most = std::max({most, std::abs(RealPart(a(i, j))), std::abs(ImaginaryPart(a(i, j)))});
    }
  }
  if (most == 0) return 1;
  constexpr int kMost = std::numeric_limits<Real<T>>::max_exponent - 2;
  return std::ldexp(Real<T>(1), std::min(-std::ilogb(most), kMost));
}

template <typename T>
void SwapColumns(const MatrixView<T>& a, int64_t i, int64_t j) {
  if (a.data != nullptr) std::swap_ranges(a.At(0, i), a.At(0, i) + a.rows, a.At(0, j));
}

// Columns i and j of x become orthogonal; w goes along. squares: the squared lengths of x's
// columns.
template <typename T>
bool RotatePair(const MatrixView<T>& x, const MatrixView<T>& w, int64_t i, int64_t j,
                Real<T>* squares) {
  using R = Real<T>;
  const R tolerance = std::numeric_limits<R>::epsilon() * std::sqrt(static_cast<R>(x.rows));
  if (squares[j] == 0) return false;
  const T dot = DotColumns(x.rows, x.At(0, i), x.At(0, j));
  const R size = std::abs(dot);
  if (size <= tolerance * std::sqrt(squares[i]) * std::sqrt(squares[j])) return false;
  const R half = (squares[j] - squares[i]) / (2 * size);
  const R tangent = 1 / (half + std::copysign(std::hypot(half, R(1)), half));
  const R cosine = 1 / std::hypot(tangent, R(1)), sine = tangent * cosine;
  for (const MatrixView<T>& both : {x, w}) {
    if (both.data == nullptr) continue;
    // With the second column turned, their product is real.
    if (dot != T(size)) {
      const T turn = Conjugate(dot) / size;
      for (int64_t k = 0; k < both.rows; ++k) both(k, j) = Product(turn, both(k, j));
    }
    RotateColumns(both.rows, cosine, sine, both.At(0, i), both.At(0, j));
  }
  squares[i] = std::max<R>(0, squares[i] - tangent * size);
  squares[j] = std::max<R>(0, squares[j] + tangent * size);
  return true;
}

// One-sided Jacobi: rotates pairs of x's columns until all are orthogonal, and w's columns along.
// Longer columns come first.
template <typename T>
bool Orthogonalize(const MatrixView<T>& x, const MatrixView<T>& w) {
  const int64_t size = x.columns;
  Scratch<Real<T>> squares_memory(static_cast<std::size_t>(size));
  Real<T>* squares = squares_memory.data();
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    for (int64_t j = 0; j < size; ++j) {
      squares[j] = RealPart(DotColumns(x.rows, x.At(0, j), x.At(0, j)));
    }
    bool rotated = false;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t longest = std::max_element(squares + i, squares + size) - squares;
      if (longest != i) {
        std::swap(squares[i], squares[longest]);
        SwapColumns(x, i, longest);
        SwapColumns(w, i, longest);
      }
      for (int64_t j = i + 1; j < size; ++j) rotated |= RotatePair(x, w, i, j, squares);
    }
    if (!rotated) return true;
  }
  return false;
}

// values: the lengths of x's columns, which become descending.
template <typename T>
void SortDescending(const MatrixView<T>& x, const MatrixView<T>& w, Real<T>* values) {
  const int64_t size = x.columns;
  for (int64_t j = 0; j < size; ++j) values[j] = Norm(x.rows, x.At(0, j));
  for (int64_t i = 0; i + 1 < size; ++i) {
    const int64_t longest = std::max_element(values + i, values + size) - values;
    if (longest == i) continue;
    std::swap(values[i], values[longest]);
    SwapColumns(x, i, longest);
    SwapColumns(w, i, longest);
  }
}

// x's orthogonal columns with length 1, in `to`. Columns of length 0 become orthogonal to the
// others: they are found by a QR factorisation, of which r is diagonal.
template <typename T>
void Normalize(const MatrixView<T>& x, const MatrixView<T>& to) {
  const int64_t size = x.columns;
  Scratch<T> taus(static_cast<std::size_t>(size));
  FactorQr(x, taus.data());
  MakeIdentity(to);
  MultiplyByQ(Const(x), taus.data(), size, to);
  for (int64_t j = 0; j < size; ++j) {
    if (RealPart(x(j, j)) >= 0) continue;
    for (int64_t i = 0; i < size; ++i) to(i, j) = -to(i, j);
  }
}

}  // namespace

template <typename T>
bool FactorSvd(const MatrixView<T>& a, Real<T>* values, const MatrixView<T>& u,
               const MatrixView<T>& v) {
  const int64_t size = a.columns;
  if (size == 0) {
    if (u.data != nullptr) MakeIdentity(u);
    return true;
  }
  const Real<T> scale = ScaleOf(a);
  if (scale == 0) return false;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) a(i, j) *= scale;
  }
  // a = q r. The columns of r^H are closer to orthogonal than a's.
  const auto count = static_cast<std::size_t>(size);
  Scratch<T> taus(count), lower(count * count);
  FactorQr(a, taus.data());
  const MatrixView<T> x = ColumnMajor(lower.data(), size, size);
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = 0; i < size; ++i) x(i, j) = i < j ? T(0) : Conjugate(a(j, i));
  }
  MatrixView<T> w = {nullptr, size, size, 1, size};
  if (u.data != nullptr) {
    MakeIdentity(u);
    w = u.Block(0, 0, size, size);
  }
  // r^H w = v diag(values), so that a = (q w) diag(values) v^H.
  if (!Orthogonalize(x, w)) return false;
  SortDescending(x, w, values);
  for (int64_t j = 0; j < size; ++j) values[j] /= scale;
  if (u.data == nullptr) return true;
  Normalize(x, v);
  MultiplyByQ(Const(a), taus.data(), size, u);
  return true;
}

#define AOTI_INSTANTIATE(T)                                                     \
  template bool FactorSvd(const MatrixView<T>&, Real<T>*, const MatrixView<T>&, \
                          const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
