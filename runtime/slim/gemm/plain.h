// Matrix products for dtypes without a tuned kernel: float64, integers, complex.

#ifndef AOTI_RUNTIME_SLIM_GEMM_PLAIN_H_
#define AOTI_RUNTIME_SLIM_GEMM_PLAIN_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "runtime/core/parallel.h"

namespace aoti::slim {

// c[m, n] = alpha * sum_k a[m, k] * b[k, n] + beta * bias[m, n]; strides in elements. Integers wrap
// around.
template <typename In, typename Out, typename Right = In>
struct PlainMatmul {
  std::int64_t m, n, k;
  const In* a;
  std::int64_t a_row, a_col;
  const Right* b;
  std::int64_t b_row, b_col;
  Out* c;
  std::int64_t c_row, c_col;
  Out alpha, beta;
  const Out* bias;  // may be null
  std::int64_t bias_row, bias_col;
};

// The type in which products and sums of T may overflow without undefined behaviour.
template <typename T>
struct WrappingOf {
  using type = T;
};
template <typename T>
  requires std::is_integral_v<T>
struct WrappingOf<T> {
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
};
template <typename T>
using Wrapping = typename WrappingOf<T>::type;

// (x + iy)(u + iv) as in BLAS, without the special cases for infinities that C++ requires.
template <typename T>
T Product(T a, T b) {
  return a * b;
}
template <typename T>
std::complex<T> Product(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename In, typename Out, typename Right>
void RunPlainMatmul(const PlainMatmul<In, Out, Right>& p) {
  using Sum = Wrapping<Out>;
  constexpr std::int64_t kRows = 4, kColumns = 256 / sizeof(Sum);
  const std::int64_t grain =
      std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(1, p.n * p.k));
  internal::ParallelFor(0, p.m, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i0 = first; i0 < last; i0 += kRows) {
      const std::int64_t rows = std::min(kRows, last - i0);
      for (std::int64_t j0 = 0; j0 < p.n; j0 += kColumns) {
        const std::int64_t columns = std::min(kColumns, p.n - j0);
        Sum sums[kRows][kColumns] = {}, right[kColumns] = {};
        for (std::int64_t k = 0; k < p.k; ++k) {
          const Right* b = p.b + k * p.b_row + j0 * p.b_col;
          for (std::int64_t j = 0; j < columns; ++j) right[j] = static_cast<Sum>(b[j * p.b_col]);
          for (std::int64_t i = 0; i < rows; ++i) {
            const Sum left = static_cast<Sum>(p.a[(i0 + i) * p.a_row + k * p.a_col]);
            for (std::int64_t j = 0; j < kColumns; ++j) sums[i][j] += Product(left, right[j]);
          }
        }
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            Sum value = Product(static_cast<Sum>(p.alpha), sums[i][j]);
            if (p.bias != nullptr) {
              const Out bias = p.bias[(i0 + i) * p.bias_row + (j0 + j) * p.bias_col];
              value += Product(static_cast<Sum>(p.beta), static_cast<Sum>(bias));
            }
            p.c[(i0 + i) * p.c_row + (j0 + j) * p.c_col] = static_cast<Out>(value);
          }
        }
      }
    }
  });
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_PLAIN_H_
