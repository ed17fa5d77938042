#include "runtime/slim/linalg/cholesky.h"

#include <algorithm>

#include "runtime/slim/linalg/triangular.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// For a small matrix with contiguous columns.
template <typename T>
int32_t FactorBlock(const MatrixView<T>& a) {
  for (int64_t j = 0; j < a.columns; ++j) {
    const Real<T> square = RealPart(a(j, j));
    if (!(square > 0)) return static_cast<int32_t>(j + 1);  // also for NaN
    const Real<T> root = std::sqrt(square);
    a(j, j) = T(root);
    for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) /= root;
    for (int64_t k = j + 1; k < a.columns; ++k) {
      AddColumn(a.rows - k, -Conjugate(a(k, j)), a.At(k, j), a.At(k, k));
    }
  }
  return 0;
}

}  // namespace

template <typename T>
int32_t FactorCholesky(const MatrixView<T>& a) {
  const int64_t size = a.rows;
  Scratch<T> block_memory(kBlock * kBlock);
  Scratch<T> conjugated(static_cast<std::size_t>(kComplex<T> ? size * kBlock : 0));
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t width = std::min(kBlock, size - first), below = size - first - width;
    const MatrixView<T> diagonal = a.Block(first, first, width, width);
    const MatrixView<T> block = ColumnMajor(block_memory.data(), width, width);
    CopyMatrix(block, diagonal);
    const int32_t info = FactorBlock(block);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = j; i < width; ++i) diagonal(i, j) = block(i, j);
    }
    if (info != 0) return static_cast<int32_t>(first) + info;
    if (below == 0) break;
    const MatrixView<T> left = a.Block(first + width, first, below, width);
    ConjugateMatrix(block);
    SolveTriangularFromRight(Triangle::kUpper, Diagonal::kOwn, Const(block.Transposed()), left);
    MatrixView<T> other = left;
    if constexpr (kComplex<T>) {
      other = ColumnMajor(conjugated.data(), below, width);
      CopyMatrix(other, left);
      ConjugateMatrix(other);
    }
    // Updates only the lower triangle, one block of columns after the other; blocks that the
    // diagonal crosses go through a scratch block.
    for (int64_t j = 0; j < below; j += kBlock) {
      const int64_t columns = std::min(kBlock, below - j);
      const MatrixView<T> crossed = a.Block(first + width + j, first + width + j, columns, columns);
      const MatrixView<T> sums = ColumnMajor(block_memory.data(), columns, columns);
      const MatrixView<const T> right = Const(other.Block(j, 0, columns, width).Transposed());
      FillMatrix(sums, T(0));
      AddProduct(sums, -1, Const(left.Block(j, 0, columns, width)), right);
      for (int64_t k = 0; k < columns; ++k) {
        for (int64_t i = k; i < columns; ++i) crossed(i, k) += sums(i, k);
      }
      const int64_t rest = below - j - columns;
      AddProduct(a.Block(first + width + j + columns, first + width + j, rest, columns), -1,
                 Const(left.Block(j + columns, 0, rest, width)), right);
    }
  }
  return 0;
}

template int32_t FactorCholesky(const MatrixView<float>&);
template int32_t FactorCholesky(const MatrixView<double>&);
template int32_t FactorCholesky(const MatrixView<std::complex<float>>&);
template int32_t FactorCholesky(const MatrixView<std::complex<double>>&);

}  // namespace aoti::slim
