#include "runtime/slim/linalg/eig.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/hessenberg.h"
#include "runtime/slim/linalg/schur.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// Solves (t - value) x = b, where t is upper triangular but for blocks of two rows. T: the dtype of
// t; S: that of the value and of x. Numbers that would overflow are avoided by scaling x.
template <typename T, typename S>
class BackSubstitution {
 public:
  using R = Real<T>;

  // x: b, which the solution replaces; all `count` numbers from x on are scaled together.
  BackSubstitution(const MatrixView<T>& t, S value, S* x, int64_t count)
      : t_(t), value_(value), x_(x), count_(count) {}

  void Run(int64_t rows) {
    for (int64_t end = rows; end > 0;) {
      const bool two = end > 1 && t_(end - 1, end - 2) != T(0);
      const int64_t begin = end - (two ? 2 : 1);
      if (two) {
        SolveTwo(begin);
      } else {
        Divide(begin, NonZero(t_(begin, begin) - value_));
      }
      for (int64_t i = begin; i < end; ++i) Subtract(begin, x_[i], i);
      end = begin;
    }
  }

  // Subtracts a multiple of a column of t from the first numbers of x.
  void Subtract(int64_t rows, S factor, int64_t column) {
    if constexpr (std::is_same_v<T, S>) {
      AddColumn(rows, -factor, t_.At(0, column), x_);
    } else {
      for (int64_t i = 0; i < rows; ++i) x_[i] -= factor * t_(i, column);
    }
  }

 private:
  // The largest number that a solution may have, so that products with it do not overflow.
  static constexpr int kMostExponent = std::numeric_limits<R>::max_exponent / 2;

  // In place of 0, which a repeated eigenvalue leaves, a number as small as rounding errors.
  S NonZero(S x) const {
    constexpr R kUnit = std::numeric_limits<R>::epsilon();
    const R least = std::max(kUnit * std::abs(value_), std::numeric_limits<R>::min() / kUnit);
    return std::abs(x) < least ? S(least) : x;
  }

  void Divide(int64_t i, S by) {
    const R most = std::ldexp(std::abs(by), kMostExponent), size = std::abs(x_[i]);
    if (size > most) {
      for (int64_t k = 0; k < count_; ++k) x_[k] *= most / size;
    }
    x_[i] /= by;
  }

  void SolveTwo(int64_t i) {
    S p = t_(i, i) - value_, q = t_(i, i + 1), r = t_(i + 1, i), s = t_(i + 1, i + 1) - value_;
    if (std::abs(r) > std::abs(p)) {
      std::swap(p, r);
      std::swap(q, s);
      std::swap(x_[i], x_[i + 1]);
    }
    const S factor = r / p;
    x_[i + 1] -= factor * x_[i];
    Divide(i + 1, NonZero(s - factor * q));
    x_[i] -= q * x_[i + 1];
    Divide(i, p);
  }

  const MatrixView<T> t_;
  const S value_;
  S* const x_;
  const int64_t count_;
};

// Divides the numbers by the largest of them.
template <typename S>
void ScaleToOne(int64_t size, S* x) {
  Real<S> most = 0;
  for (int64_t i = 0; i < size; ++i) most = std::max(most, std::abs(x[i]));
  for (int64_t i = 0; i < size; ++i) x[i] /= most;
}

// The eigenvector of the Schur form t that belongs to t(k, k).
template <typename T>
void VectorOf(const MatrixView<T>& t, int64_t k, T* x) {
  std::fill_n(x, k, T(0));
  x[k] = T(1);
  BackSubstitution<T, T> solve(t, t(k, k), x, k + 1);
  solve.Subtract(k, x[k], k);
  solve.Run(k);
  ScaleToOne(k + 1, x);
}

// The one that belongs to the block of rows k and k + 1, and has the positive imaginary part.
template <typename R>
void VectorOfPair(const MatrixView<R>& t, int64_t k, std::complex<R> value, std::complex<R>* x) {
  using S = std::complex<R>;
  const R b = t(k, k + 1), c = t(k + 1, k);
  const bool upper = std::abs(b) >= std::abs(c);
  std::fill_n(x, k, S(0));
  x[k] = upper ? S(1) : S(-value.imag() / c);
  x[k + 1] = upper ? S(0, value.imag() / b) : S(0, 1);
  BackSubstitution<R, S> solve(t, value, x, k + 2);
  solve.Subtract(k, x[k], k);
  solve.Subtract(k, x[k + 1], k + 1);
  solve.Run(k);
  ScaleToOne(k + 2, x);
}

// The eigenvectors of the Schur form t. Those of a pair are two columns: real and imaginary parts.
template <typename T>
void VectorsOf(const MatrixView<T>& t, const std::complex<Real<T>>* values,
               const MatrixView<T>& x) {
  const int64_t size = t.rows;
  FillMatrix(x, T(0));
  Scratch<std::complex<Real<T>>> pair(static_cast<std::size_t>(kComplex<T> ? 0 : size));
  for (int64_t k = 0; k < size; ++k) {
    if constexpr (!kComplex<T>) {
      if (k + 1 < size && t(k + 1, k) != T(0)) {
        VectorOfPair(t, k, values[k], pair.data());
        for (int64_t i = 0; i < k + 2; ++i) {
          x(i, k) = pair.data()[i].real();
          x(i, k + 1) = pair.data()[i].imag();
        }
        ++k;
        continue;
      }
    }
    VectorOf(t, k, x.At(0, k));
  }
}

// Makes complex columns of those of a pair.
template <typename R>
void Unpack(const MatrixView<R>& from, const std::complex<R>* values,
            const MatrixView<std::complex<R>>& to) {
  for (int64_t k = 0; k < from.columns; ++k) {
    const bool pair = values[k].imag() != 0;
    for (int64_t i = 0; i < from.rows; ++i) {
      to(i, k) = {from(i, k), pair ? from(i, k + 1) : 0};
      if (pair) to(i, k + 1) = std::conj(to(i, k));
    }
    if (pair) ++k;
  }
}

// Makes the norm 1 and the largest number real. keep_sign: it stays negative if its real part is,
// and is the larger part: LAPACK's choice for real matrices.
template <typename R>
void Normalize(int64_t size, bool keep_sign, std::complex<R>* x) {
  const R norm = Norm(size, x);
  int64_t largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    x[i] /= norm;
    if (std::abs(x[i]) > std::abs(x[largest])) largest = i;
  }
  if (x[largest].imag() == 0) return;
  const R length = std::abs(x[largest]);
  const bool negative = keep_sign && x[largest].real() < -std::abs(x[largest].imag());
  const std::complex<R> turn = std::conj(x[largest]) / (negative ? -length : length);
  for (int64_t i = 0; i < size; ++i) x[i] = Product(x[i], turn);
  x[largest].imag(0);
}

// The power of two that keeps the numbers far from overflow and underflow; 0 if not all are finite.
template <typename T>
Real<T> SafeScale(const MatrixView<T>& a) {
  using R = Real<T>;
  if (!IsFinite(a)) return 0;
  R most = 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      most = std::max({most, std::abs(RealPart(a(i, j))), std::abs(ImaginaryPart(a(i, j)))});
    }
  }
  const int exponent = most == 0 ? 0 : std::ilogb(most);
  if (std::abs(exponent) <= std::numeric_limits<R>::max_exponent / 4) return 1;
  return std::ldexp(R(1), std::min(-exponent, std::numeric_limits<R>::max_exponent - 2));
}

}  // namespace

template <typename T>
bool FactorGeneral(const MatrixView<T>& a, std::complex<Real<T>>* values,
                   const MatrixView<std::complex<Real<T>>>& vectors) {
  const int64_t size = a.rows;
  if (size == 0) return true;
  const Real<T> scale = SafeScale(a);
  if (scale == 0) return false;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = 0; i < size; ++i) a(i, j) *= scale;
  }
  const auto count = static_cast<std::size_t>(size * size);
  Scratch<T> q_memory(count), x_memory(count);
  const MatrixView<T> q = ColumnMajor(q_memory.data(), size, size);
  const MatrixView<T> x = ColumnMajor(x_memory.data(), size, size);
  const Balance<T> balance(a);
  FactorHessenberg(a, balance.first(), balance.last(), q);
  if (!FactorSchur(a, balance.first(), balance.last(), values, q)) return false;
  VectorsOf(a, values, x);
  if constexpr (kComplex<T>) {
    FillMatrix(vectors, T(0));
    AddProduct(vectors, 1, Const(q), Const(x));
  } else {
    Scratch<T> products(count);
    const MatrixView<T> product = ColumnMajor(products.data(), size, size);
    FillMatrix(product, T(0));
    AddProduct(product, 1, Const(q), Const(x));
    Unpack(product, values, vectors);
  }
  balance.Undo(vectors);
  for (int64_t k = 0; k < size; ++k) {
    Normalize(size, /*keep_sign=*/!kComplex<T>, vectors.At(0, k));
    values[k] /= scale;
  }
  return true;
}

#define AOTI_INSTANTIATE(T)                                                 \
  template bool FactorGeneral(const MatrixView<T>&, std::complex<Real<T>>*, \
                              const MatrixView<std::complex<Real<T>>>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
