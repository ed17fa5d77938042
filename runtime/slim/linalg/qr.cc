#include "runtime/slim/linalg/qr.h"

#include <algorithm>
#include <limits>

#include "runtime/slim/kernels/rounding.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// b = (1 - tau v v^H) b
template <typename T>
void Reflect(T tau, const T* v, const MatrixView<T>& b) {
  if (tau == T(0)) return;
  for (int64_t j = 0; j < b.columns; ++j) {
    const T sum = DotColumns(b.rows, v, b.At(0, j));
    AddColumn(b.rows, -Product(tau, sum), v, b.At(0, j));
  }
}

// Up to kBlock reflectors at once: their product is 1 - v t v^H, where t is upper triangular.
template <typename T>
class Reflectors {
 public:
  Reflectors(int64_t rows, int64_t columns)
      : v_(static_cast<std::size_t>(rows * kBlock)),
        conjugated_(static_cast<std::size_t>(kComplex<T> ? rows * kBlock : 0)),
        t_(kBlock * kBlock),
        sums_(static_cast<std::size_t>(kBlock * columns)),
        products_(static_cast<std::size_t>(kBlock * columns)) {}

  // `kept`: in the form in which FactorQr() stores them.
  void Set(const MatrixView<const T>& kept, const T* taus, int64_t count) {
    rows_ = kept.rows;
    count_ = count;
    const MatrixView<T> v = V();
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i < std::min(j, rows_); ++i) v(i, j) = T(0);
      v(j, j) = T(1);
      for (int64_t i = j + 1; i < rows_; ++i) v(i, j) = kept(i, j);
    }
    if constexpr (kComplex<T>) {
      const MatrixView<T> other = ColumnMajor(conjugated_.data(), rows_, count_);
      CopyMatrix(other, v);
      ConjugateMatrix(other);
    }
    const MatrixView<T> t = Triangle();
    for (int64_t j = 0; j < count; ++j) {
      T dots[kBlock];
      for (int64_t k = 0; k < j; ++k) dots[k] = DotColumns(rows_, v.At(0, k), v.At(0, j));
      for (int64_t i = 0; i < j; ++i) {
        T sum = 0;
        for (int64_t k = i; k < j; ++k) sum += Product(t(i, k), dots[k]);
        t(i, j) = -Product(taus[j], sum);
      }
      t(j, j) = taus[j];
    }
  }

  // b = (1 - v t v^H) b; inverse: with t^H instead.
  void Apply(bool inverse, const MatrixView<T>& b) {
    if (b.columns == 0) return;
    const MatrixView<T> v = V(), t = Triangle();
    const MatrixView<T> conjugated =
        kComplex<T> ? ColumnMajor(conjugated_.data(), rows_, count_) : v;
    const MatrixView<T> sums = ColumnMajor(sums_.data(), count_, b.columns);
    const MatrixView<T> products = ColumnMajor(products_.data(), count_, b.columns);
    FillMatrix(sums, T(0));
    AddProduct(sums, 1, Const(conjugated.Transposed()), Const(b));
    for (int64_t k = 0; k < b.columns; ++k) {
      for (int64_t i = 0; i < count_; ++i) {
        T sum = 0;
        if (inverse) {
          for (int64_t j = 0; j <= i; ++j) sum += Product(Conjugate(t(j, i)), sums(j, k));
        } else {
          for (int64_t j = i; j < count_; ++j) sum += Product(t(i, j), sums(j, k));
        }
        products(i, k) = sum;
      }
    }
    AddProduct(b, -1, Const(v), Const(products));
  }

 private:
  MatrixView<T> V() { return ColumnMajor(v_.data(), rows_, count_); }
  MatrixView<T> Triangle() { return {t_.data(), count_, count_, 1, kBlock}; }

  Scratch<T> v_, conjugated_, t_, sums_, products_;
  int64_t rows_ = 0, count_ = 0;
};

// Factorises one column after the other. `v`: memory for one column.
template <typename T>
void FactorPanel(const MatrixView<T>& a, T* taus, T* v) {
  for (int64_t j = 0; j < std::min(a.rows, a.columns); ++j) {
    const int64_t size = a.rows - j;
    taus[j] = MakeReflector(size, a.At(j, j));
    std::copy_n(a.At(j, j), size, v);
    v[0] = T(1);
    Reflect(Conjugate(taus[j]), v, a.Block(j, j + 1, size, a.columns - j - 1));
  }
}

}  // namespace

template <typename T>
T MakeReflector(int64_t size, T* x) {
  if (size == 0) return 0;
  using R = Real<T>;
  T first = x[0];
  R rest = Norm(size - 1, x + 1);
  if (rest == 0 && ImaginaryPart(first) == 0) return 0;
  R length = -std::copysign(std::hypot(std::abs(first), rest), RealPart(first));
  // Numbers so small that 1 / (first - length) could overflow are scaled for this step.
  constexpr R kLeast = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  int enlarged = 0;
  while (std::abs(length) < kLeast && enlarged < 20) {
    ++enlarged;
    for (int64_t i = 0; i < size; ++i) x[i] /= kLeast;
    length /= kLeast;
  }
  if (enlarged > 0) {
    first = x[0];
    rest = Norm(size - 1, x + 1);
    length = -std::copysign(std::hypot(std::abs(first), rest), RealPart(first));
  }
  const T tau = (T(length) - first) / length;
  const T factor = T(1) / (first - T(length));
  for (int64_t i = 1; i < size; ++i) x[i] = Product(x[i], factor);
  for (; enlarged > 0; --enlarged) length *= kLeast;
  x[0] = T(length);
  return tau;
}

template <typename T>
void FactorQr(const MatrixView<T>& a, T* taus) {
  const int64_t count = std::min(a.rows, a.columns);
  Scratch<T> v(static_cast<std::size_t>(a.rows));
  if (a.columns <= kBlock) return FactorPanel(a, taus, v.data());
  Reflectors<T> reflectors(a.rows, a.columns);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t width = std::min(kBlock, count - first), height = a.rows - first;
    const MatrixView<T> panel = a.Block(first, first, height, width);
    FactorPanel(panel, taus + first, v.data());
    const int64_t right = a.columns - first - width;
    if (right == 0) break;
    reflectors.Set(Const(panel), taus + first, width);
    reflectors.Apply(/*inverse=*/true, a.Block(first, first + width, height, right));
  }
}

template <typename T>
void MultiplyByQ(const MatrixView<const std::type_identity_t<T>>& kept,
                 const std::type_identity_t<T>* taus, int64_t count, const MatrixView<T>& b,
                 Factor factor) {
  if (count == 0 || b.columns == 0) return;
  const bool adjoint = factor == Factor::kAdjoint;
  Reflectors<T> reflectors(b.rows, b.columns);
  const int64_t blocks = CeilDiv(count, kBlock);
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t first = (adjoint ? step : blocks - 1 - step) * kBlock;
    const int64_t width = std::min(kBlock, count - first), height = b.rows - first;
    reflectors.Set(kept.Block(first, first, height, width), taus + first, width);
    reflectors.Apply(adjoint, b.Block(first, 0, height, b.columns));
  }
}

#define AOTI_INSTANTIATE(T)                                                                      \
  template T MakeReflector(int64_t, T*);                                                         \
  template void FactorQr(const MatrixView<T>&, T*);                                              \
  template void MultiplyByQ(const MatrixView<const T>&, const T*, int64_t, const MatrixView<T>&, \
                            Factor);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
