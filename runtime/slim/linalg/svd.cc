#include "runtime/slim/linalg/svd.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/qr.h"

namespace aoti::slim {
namespace {

using std::int64_t;

constexpr int kMostSweeps = 60;  // about ten are needed usually

// The power of two that scales the largest number to about 1, or 0 if not all numbers are finite.
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

// Rotates columns i and j of x until they are orthogonal, and the columns of w likewise. squares:
// the squared norms of x's columns.
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
    // A rotation of the second column in the complex plane makes the dot product real.
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

// One-sided Jacobi: rotates pairs of columns of x until all are orthogonal, and the columns of w
// likewise. Longer columns come first.
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

// values: the norms of x's columns, sorted in descending order.
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

// Writes x's orthogonal columns, scaled to length 1, to `to`. A QR factorisation, whose r is
// diagonal, replaces columns of length 0 by columns that are orthogonal to the others.
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
