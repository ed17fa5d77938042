#include "runtime/slim/linalg/exp.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace aoti::slim {
namespace {

using std::int64_t;

// The Taylor polynomial of degree 16 is accurate to the last bits for matrices up to this norm.
template <typename R>
inline constexpr R kEnough = std::is_same_v<R, float> ? R(2) : R(0.75);

// 1 / n!, for n = 0..16.
constexpr double InverseFactorial(int n) {
  double result = 1;
  for (int i = 2; i <= n; ++i) result /= i;
  return result;
}

// The largest sum of the magnitudes in a column.
template <typename T>
Real<T> Norm1(const MatrixView<T>& a) {
  Real<T> most = 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    Real<T> sum = 0;
    for (int64_t i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
    if (!(sum <= most)) most = sum;  // also for NaN
    if (std::isnan(most)) break;
  }
  return most;
}

template <typename T>
class Powers {
 public:
  explicit Powers(const MatrixView<T>& a)
      : size_(a.rows), memory_(static_cast<std::size_t>(6 * size_ * size_)) {
    CopyMatrix(Power(1), a);
    for (int n = 2; n <= 4; ++n) Multiply(Power(n), Power(n - 1), Power(1));
  }

  // The sum of a^n / n! for n = 0..16, four powers at a time, to save matrix products.
  MatrixView<T> Sum() {
    MatrixView<T> sum = Matrix(4), other = Matrix(5);
    FillMatrix(sum, T(0));
    AddMultiple(sum, 16, 4);
    for (int first = 12;; first -= 4) {
      for (int n = 1; n < 4; ++n) AddMultiple(sum, first + n, n);
      for (int64_t i = 0; i < size_; ++i) sum(i, i) += Real<T>(InverseFactorial(first));
      if (first == 0) return sum;
      Multiply(other, sum, Power(4));
      std::swap(sum, other);
    }
  }

  static void Multiply(const MatrixView<T>& to, const MatrixView<T>& a, const MatrixView<T>& b) {
    FillMatrix(to, T(0));
    AddProduct(to, 1, Const(a), Const(b));
  }
  MatrixView<T> Matrix(int64_t i) {
    return ColumnMajor(memory_.data() + i * size_ * size_, size_, size_);
  }

 private:
  MatrixView<T> Power(int n) { return Matrix(n - 1); }
  // sum += a^power / n!
  void AddMultiple(const MatrixView<T>& sum, int n, int power) {
    AddColumn(size_ * size_, T(Real<T>(InverseFactorial(n))), Power(power).data, sum.data);
  }

  const int64_t size_;
  Scratch<T> memory_;
};

}  // namespace

template <typename T>
void Exponentiate(const MatrixView<T>& a) {
  using R = Real<T>;
  const R norm = Norm1(a);
  if (!std::isfinite(norm)) return FillMatrix(a, T(std::numeric_limits<R>::quiet_NaN()));
  // exp(a) = exp(a / 2^n)^(2^n)
  const int halvings = norm > kEnough<R> ? std::ilogb(norm / kEnough<R>) + 1 : 0;
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      if constexpr (kComplex<T>) {
        a(i, j) = {std::ldexp(a(i, j).real(), -halvings), std::ldexp(a(i, j).imag(), -halvings)};
      } else {
        a(i, j) = std::ldexp(a(i, j), -halvings);
      }
    }
  }
  Powers<T> powers(a);
  MatrixView<T> result = powers.Sum(), other = powers.Matrix(0);
  for (int i = 0; i < halvings; ++i) {
    Powers<T>::Multiply(other, result, result);
    std::swap(result, other);
  }
  CopyMatrix(a, result);
}

template void Exponentiate(const MatrixView<float>&);
template void Exponentiate(const MatrixView<double>&);
template void Exponentiate(const MatrixView<std::complex<float>>&);
template void Exponentiate(const MatrixView<std::complex<double>>&);

}  // namespace aoti::slim
