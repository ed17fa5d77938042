// Matrices in memory, and the basic operations of linear algebra: on columns, and products.
//
// The algorithms in this folder are for float, double, and std::complex of both. They work in place
// on views with any strides; with transposed and reversed views, one algorithm serves many cases.

#ifndef AOTI_RUNTIME_SLIM_LINALG_MATRIX_H_
#define AOTI_RUNTIME_SLIM_LINALG_MATRIX_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "runtime/slim/gemm/plain.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

// The number of columns that blocked algorithms process at once.
inline constexpr std::int64_t kBlock = 32;

template <typename T>
struct MatrixView {
  T* data;
  std::int64_t rows, columns;
  std::int64_t row, column;  // strides

  T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
  T* At(std::int64_t i, std::int64_t j) const { return data + i * row + j * column; }
  MatrixView Block(std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width) const {
    return {At(i, j), height, width, row, column};
  }
  MatrixView Transposed() const { return {data, columns, rows, column, row}; }
  // A view that begins with the last row, or with the last column.
  MatrixView UpsideDown() const { return {At(rows - 1, 0), rows, columns, -row, column}; }
  MatrixView Mirrored() const { return {At(0, columns - 1), rows, columns, row, -column}; }
};

// A matrix with the elements `data`, in column-major order.
template <typename T>
MatrixView<T> ColumnMajor(T* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns, 1, rows};
}

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealOf<T>::type;
template <typename T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

template <typename T>
T Conjugate(T x) {
  if constexpr (kComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}
template <typename T>
Real<T> RealPart(T x) {
  if constexpr (kComplex<T>) {
    return x.real();
  } else {
    return x;
  }
}
template <typename T>
Real<T> ImaginaryPart(T x) {
  if constexpr (kComplex<T>) {
    return x.imag();
  } else {
    return 0;
  }
}
// The size of a number by which LAPACK chooses a pivot.
template <typename T>
Real<T> Magnitude(T x) {
  return std::abs(RealPart(x)) + std::abs(ImaginaryPart(x));
}
template <typename T>
bool IsFinite(T x) {
  return std::isfinite(RealPart(x)) && std::isfinite(ImaginaryPart(x));
}

template <typename T>
bool IsFinite(const MatrixView<T>& a) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      if (!IsFinite(a(i, j))) return false;
    }
  }
  return true;
}

// Copies a matrix into another of the same sizes.
template <typename To, typename From>
void CopyMatrix(const MatrixView<To>& to, const MatrixView<From>& from) {
  for (std::int64_t j = 0; j < to.columns; ++j) {
    for (std::int64_t i = 0; i < to.rows; ++i) to(i, j) = from(i, j);
  }
}
template <typename T>
void FillMatrix(const MatrixView<T>& a, T value) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) a(i, j) = value;
  }
}
template <typename T>
void MakeIdentity(const MatrixView<T>& a) {
  FillMatrix(a, T(0));
  for (std::int64_t i = 0; i < a.rows && i < a.columns; ++i) a(i, i) = T(1);
}
// Conjugates the numbers; real ones stay as they are.
template <typename T>
void ConjugateMatrix(const MatrixView<T>& a) {
  if constexpr (kComplex<T>) {
    for (std::int64_t j = 0; j < a.columns; ++j) {
      for (std::int64_t i = 0; i < a.rows; ++i) a(i, j) = std::conj(a(i, j));
    }
  }
}

// y += a * x, for contiguous columns.
template <typename T>
void AddColumn(std::int64_t size, T a, const T* x, T* y);
// The sum of conj(x) * y.
template <typename T>
T DotColumns(std::int64_t size, const T* x, const T* y);
// x = c * x - s * y and y = s * x + c * y, both from the old x and y.
template <typename T>
void RotateColumns(std::int64_t size, Real<T> c, Real<T> s, T* x, T* y);
// The Euclidean norm, without overflow or underflow.
template <typename T>
Real<T> Norm(std::int64_t size, const T* x);

// c += alpha * a * b; c must not overlap with a or b. The result does not depend on the number of
// threads.
template <typename T>
void AddProduct(const MatrixView<T>& c, std::type_identity_t<Real<T>> alpha,
                const MatrixView<const std::type_identity_t<T>>& a,
                const MatrixView<const std::type_identity_t<T>>& b);

template <typename T>
MatrixView<const T> Const(const MatrixView<T>& a) {
  return {a.data, a.rows, a.columns, a.row, a.column};
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_MATRIX_H_
