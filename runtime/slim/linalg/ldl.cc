#include "runtime/slim/linalg/ldl.h"

#include <algorithm>
#include <utility>

namespace aoti::slim {
namespace {

using std::int64_t;

// One factorisation; steps of one or two columns.
template <typename T>
class Factorization {
 public:
  Factorization(const MatrixView<T>& a, Symmetry symmetry)
      : a_(a), hermitian_(kComplex<T> && symmetry == Symmetry::kConjugated) {}

  std::int32_t Run(std::int32_t* pivots) {
    std::int32_t info = 0;
    for (int64_t k = 0; k < a_.rows;) {
      bool zero = false;
      const Pivot pivot = Choose(k, zero);
      if (zero && info == 0) info = static_cast<std::int32_t>(k + 1);
      Exchange(k, pivot);
      if (pivot.rows == 1) {
        pivots[k] = static_cast<std::int32_t>(pivot.row + 1);
        if (!zero) EliminateOne(k);
      } else {
        pivots[k] = pivots[k + 1] = static_cast<std::int32_t>(-(pivot.row + 1));
        EliminateTwo(k);
      }
      k += pivot.rows;
    }
    return info;
  }

 private:
  // The next block has this many rows, and its last row is exchanged with `row`.
  struct Pivot {
    int64_t rows, row;
  };

  T Mirrored(T x) const { return hermitian_ ? Conjugate(x) : x; }
  Real<T> OfDiagonal(int64_t i) const {
    return hermitian_ ? std::abs(RealPart(a_(i, i))) : Magnitude(a_(i, i));
  }
  // The largest number of a row beside the diagonal, from column k on.
  Real<T> LargestOfRow(int64_t row, int64_t k) const {
    Real<T> most = 0;
    for (int64_t j = k; j < row; ++j) most = std::max(most, Magnitude(a_(row, j)));
    for (int64_t i = row + 1; i < a_.rows; ++i) most = std::max(most, Magnitude(a_(i, row)));
    return most;
  }

  Pivot Choose(int64_t k, bool& zero) const {
    // The limit of the growth of numbers is the same for blocks of one and of two rows.
    const Real<T> alpha = (1 + std::sqrt(Real<T>(17))) / 8;
    int64_t below = k;
    Real<T> largest = 0;
    for (int64_t i = k + 1; i < a_.rows; ++i) {
      const Real<T> size = Magnitude(a_(i, k));
      if (size > largest || below == k) {
        below = i;
        largest = size;
      }
    }
    const Real<T> own = OfDiagonal(k);
    zero = std::max(own, largest) == 0 || std::isnan(own);
    if (zero || own >= alpha * largest) return {1, k};
    const Real<T> beside = LargestOfRow(below, k);
    if (own >= alpha * largest * (largest / beside)) return {1, k};
    if (OfDiagonal(below) >= alpha * beside) return {1, below};
    return {2, below};
  }

  // Exchanges rows and columns of what is not factorised yet, and makes hermitian diagonals real.
  void Exchange(int64_t k, const Pivot& pivot) {
    const int64_t own = k + pivot.rows - 1, other = pivot.row;
    if (other != own) {
      for (int64_t i = other + 1; i < a_.rows; ++i) std::swap(a_(i, own), a_(i, other));
      for (int64_t j = own + 1; j < other; ++j) {
        const T kept = Mirrored(a_(j, own));
        a_(j, own) = Mirrored(a_(other, j));
        a_(other, j) = kept;
      }
      a_(other, own) = Mirrored(a_(other, own));
      std::swap(a_(own, own), a_(other, other));
      if (pivot.rows == 2) std::swap(a_(k + 1, k), a_(other, k));
    }
    if (!hermitian_) return;
    for (const int64_t i : {k, own, other}) a_(i, i) = RealPart(a_(i, i));
  }

  // Subtracts x y^T (or x y^H) from the lower triangle that begins at row `first`.
  void Subtract(int64_t first, const T* x, const T* y) {
    for (int64_t j = first; j < a_.rows; ++j) {
      AddColumn(a_.rows - j, -Mirrored(y[j - first]), x + (j - first), a_.At(j, j));
      if (hermitian_) a_(j, j) = RealPart(a_(j, j));
    }
  }

  void EliminateOne(int64_t k) {
    const int64_t below = a_.rows - k - 1;
    if (below == 0) return;
    const T inverse = T(1) / a_(k, k);
    T* column = a_.At(k + 1, k);
    Scratch<T> scaled(static_cast<std::size_t>(below));
    for (int64_t i = 0; i < below; ++i) scaled.data()[i] = Product(inverse, column[i]);
    Subtract(k + 1, column, scaled.data());
    std::copy_n(scaled.data(), below, column);
  }

  void EliminateTwo(int64_t k) {
    const int64_t below = a_.rows - k - 2;
    if (below == 0) return;
    // The inverse of the block [[p, mirrored(q)], [q, r]], with q taken out of its numbers.
    const T q = a_(k + 1, k);
    const T length = hermitian_ ? T(std::abs(q)) : q, turn = q / length;
    const T r = a_(k + 1, k + 1) / length, p = a_(k, k) / length;
    const T factor = T(1) / (Product(r, p) - T(1)) / length;
    T* first = a_.At(k + 2, k);
    T* second = a_.At(k + 2, k + 1);
    Scratch<T> x(static_cast<std::size_t>(below)), y(static_cast<std::size_t>(below));
    for (int64_t i = 0; i < below; ++i) {
      x.data()[i] = Product(factor, Product(r, first[i]) - Product(turn, second[i]));
      y.data()[i] = Product(factor, Product(p, second[i]) - Product(Mirrored(turn), first[i]));
    }
    Subtract(k + 2, first, x.data());
    Subtract(k + 2, second, y.data());
    std::copy_n(x.data(), below, first);
    std::copy_n(y.data(), below, second);
  }

  const MatrixView<T> a_;
  const bool hermitian_;
};

}  // namespace

template <typename T>
std::int32_t FactorLdl(const MatrixView<T>& a, std::int32_t* pivots, Symmetry symmetry) {
  return Factorization<T>(a, symmetry).Run(pivots);
}

template <typename T>
void SolveLdl(const MatrixView<const std::type_identity_t<T>>& ldl, const std::int32_t* pivots,
              Symmetry symmetry, const MatrixView<T>& b) {
  const int64_t size = ldl.rows;
  const bool hermitian = kComplex<T> && symmetry == Symmetry::kConjugated;
  const auto mirrored = [&](T x) { return hermitian ? Conjugate(x) : x; };
  const auto rows_of = [&](int64_t k) { return pivots[k] > 0 ? 1 : 2; };
  const auto exchange = [&](T* x, int64_t k) {
    std::swap(x[k], x[std::abs(static_cast<int64_t>(pivots[k])) - 1]);
  };
  for (int64_t j = 0; j < b.columns; ++j) {
    T* x = b.At(0, j);
    for (int64_t k = 0; k < size; k += rows_of(k)) {
      const int64_t rows = rows_of(k), last = k + rows - 1, below = size - last - 1;
      exchange(x, last);
      for (int64_t i = k; i <= last; ++i) {
        for (int64_t n = 0; n < below; ++n) {
          x[last + 1 + n] -= Product(x[i], ldl(last + 1 + n, i));
        }
      }
      if (rows == 1) {
        x[k] /= hermitian ? T(RealPart(ldl(k, k))) : ldl(k, k);
      } else {
        const T q = ldl(k + 1, k), other = mirrored(q);
        const T p = ldl(k, k) / other, r = ldl(k + 1, k + 1) / q;
        const T divisor = Product(p, r) - T(1);
        const T upper = x[k] / other, lower = x[k + 1] / q;
        x[k] = (Product(r, upper) - lower) / divisor;
        x[k + 1] = (Product(p, lower) - upper) / divisor;
      }
    }
    for (int64_t k = size - 1; k >= 0; k -= rows_of(k)) {
      const int64_t rows = rows_of(k);
      for (int64_t i = k - rows + 1; i <= k; ++i) {
        T sum = 0;
        for (int64_t n = k + 1; n < size; ++n) sum += Product(mirrored(ldl(n, i)), x[n]);
        x[i] -= sum;
      }
      exchange(x, k);
    }
  }
}

bool CheckLdlPivots(int64_t size, const std::int32_t* pivots) {
  for (int64_t k = 0; k < size; ++k) {
    const int64_t row = std::abs(static_cast<int64_t>(pivots[k]));
    if (row < 1 || row > size) return false;
    if (pivots[k] > 0) continue;
    if (k + 1 == size || pivots[k + 1] != pivots[k]) return false;
    ++k;
  }
  return true;
}

#define AOTI_INSTANTIATE(T)                                                         \
  template std::int32_t FactorLdl(const MatrixView<T>&, std::int32_t*, Symmetry);   \
  template void SolveLdl(const MatrixView<const T>&, const std::int32_t*, Symmetry, \
                         const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
