#include "runtime/slim/linalg/eigh.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/qr.h"

namespace aoti::slim {
namespace {

using std::int64_t;

constexpr int kMostSteps = 50;  // for one eigenvalue, which usually takes two or three

// y = a x, where only the lower triangle of a is stored.
template <typename T>
void MultiplyHermitian(const MatrixView<T>& a, const T* x, T* y) {
  std::fill_n(y, a.rows, T(0));
  for (int64_t j = 0; j < a.columns; ++j) {
    const int64_t below = a.rows - j - 1;
    const T* column = a.At(j, j) + 1;
    y[j] += RealPart(a(j, j)) * x[j] + DotColumns(below, column, x + j + 1);
    AddColumn(below, x[j], column, y + j + 1);
  }
}

// Makes a tridiagonal: q^H a q has this diagonal, and the real numbers `beside` next to it. The
// reflectors whose product is q stay in a, from row 1 on.
template <typename T>
void Tridiagonalize(const MatrixView<T>& a, Real<T>* diagonal, Real<T>* beside, T* taus) {
  const int64_t size = a.rows;
  Scratch<T> v(static_cast<std::size_t>(size)), w(static_cast<std::size_t>(size));
  for (int64_t j = 0; j + 1 < size; ++j) {
    const int64_t below = size - j - 1;
    T* column = a.At(j + 1, j);
    taus[j] = MakeReflector(below, column);
    diagonal[j] = RealPart(a(j, j));
    beside[j] = RealPart(column[0]);
    const T tau = taus[j];
    if (tau == T(0)) continue;
    std::copy_n(column, below, v.data());
    v[0] = T(1);
    const MatrixView<T> rest = a.Block(j + 1, j + 1, below, below);
    // rest = h^H rest h = rest - v w^H - w v^H
    MultiplyHermitian(rest, v.data(), w.data());
    for (int64_t i = 0; i < below; ++i) w.data()[i] = Product(tau, w.data()[i]);
    const T half = Product(tau, DotColumns(below, w.data(), v.data())) * Real<T>(-0.5);
    AddColumn(below, half, v.data(), w.data());
    for (int64_t k = 0; k < below; ++k) {
      AddColumn(below - k, -Conjugate(w.data()[k]), v.data() + k, rest.At(k, k));
      AddColumn(below - k, -Conjugate(v.data()[k]), w.data() + k, rest.At(k, k));
    }
  }
  diagonal[size - 1] = RealPart(a(size - 1, size - 1));
}

// Takes implicit QL steps on the tridiagonal matrix until it is diagonal, and applies the same
// rotations to q's columns.
template <typename T>
bool Diagonalize(int64_t size, Real<T>* diagonal, Real<T>* beside, const MatrixView<T>& q) {
  using R = Real<T>;
  // Off-diagonal numbers that are as small as the rounding errors so far count as 0.
  R largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    largest = std::max({largest, std::abs(diagonal[i]), std::abs(beside[i])});
  }
  const R tolerance = std::numeric_limits<R>::epsilon() / 2 * largest;
  for (int64_t first = 0; first < size; ++first) {
    for (int step = 0;; ++step) {
      int64_t last = first;
      while (last + 1 < size) {
        if (std::abs(beside[last]) <= tolerance) break;
        ++last;
      }
      if (last == first) break;
      if (step == kMostSteps) return false;
      // Wilkinson's shift.
      const R half = (diagonal[first + 1] - diagonal[first]) / (2 * beside[first]);
      R g = diagonal[last] - diagonal[first] +
            beside[first] / (half + std::copysign(std::hypot(half, R(1)), half));
      R sine = 1, cosine = 1, moved = 0;
      bool early = false;
      for (int64_t i = last - 1; i >= first; --i) {
        const R f = sine * beside[i], b = cosine * beside[i];
        const R length = std::hypot(f, g);
        beside[i + 1] = length;
        if (length == 0) {
          diagonal[i + 1] -= moved;
          beside[last] = 0;
          early = true;
          break;
        }
        sine = f / length;
        cosine = g / length;
        g = diagonal[i + 1] - moved;
        const R r = (diagonal[i] - g) * sine + 2 * cosine * b;
        moved = sine * r;
        diagonal[i + 1] = g + moved;
        g = cosine * r - b;
        if (q.data != nullptr) RotateColumns(q.rows, cosine, sine, q.At(0, i), q.At(0, i + 1));
      }
      if (early) continue;
      diagonal[first] -= moved;
      beside[first] = g;
      beside[last] = 0;
    }
  }
  return true;
}

template <typename T>
void SortAscending(int64_t size, Real<T>* values, const MatrixView<T>& q) {
  for (int64_t i = 0; i + 1 < size; ++i) {
    const int64_t least = std::min_element(values + i, values + size) - values;
    if (least == i) continue;
    std::swap(values[i], values[least]);
    if (q.data != nullptr) std::swap_ranges(q.At(0, i), q.At(0, i) + q.rows, q.At(0, least));
  }
}

// The power of two that scales the largest number of the triangle to about 1, or 0 if not all
// numbers are finite.
template <typename T>
Real<T> ScaleOfTriangle(const MatrixView<T>& a) {
  Real<T> most = 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = j; i < a.rows; ++i) {
      if (!IsFinite(a(i, j))) return 0;
      most = std::max({most, std::abs(RealPart(a(i, j))), std::abs(ImaginaryPart(a(i, j)))});
    }
  }
  if (most == 0) return 1;
  constexpr int kMost = std::numeric_limits<Real<T>>::max_exponent - 2;
  return std::ldexp(Real<T>(1), std::min(-std::ilogb(most), kMost));
}

}  // namespace

template <typename T>
bool FactorHermitian(const MatrixView<T>& a, Real<T>* values, const MatrixView<T>& q) {
  const int64_t size = a.rows;
  if (size == 0) return true;
  const Real<T> scale = ScaleOfTriangle(a);
  if (scale == 0) return false;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = j; i < size; ++i) a(i, j) *= scale;
  }
  Scratch<Real<T>> beside(static_cast<std::size_t>(size));
  Scratch<T> taus(static_cast<std::size_t>(size));
  std::fill_n(beside.data(), size, Real<T>(0));
  Tridiagonalize(a, values, beside.data(), taus.data());
  if (q.data != nullptr) {
    MakeIdentity(q);
    MultiplyByQ(Const(a.Block(1, 0, size - 1, size - 1)), taus.data(), size - 1,
                q.Block(1, 1, size - 1, size - 1));
  }
  if (!Diagonalize(size, values, beside.data(), q)) return false;
  SortAscending(size, values, q);
  for (int64_t i = 0; i < size; ++i) values[i] /= scale;
  return true;
}

#define AOTI_INSTANTIATE(T) \
  template bool FactorHermitian(const MatrixView<T>&, Real<T>*, const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
