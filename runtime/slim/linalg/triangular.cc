#include "runtime/slim/linalg/triangular.h"

#include <algorithm>

namespace aoti::slim {
namespace {

using std::int64_t;

// The unknowns of several right-hand sides, interleaved, so that each step is one loop over them.
template <typename T>
inline constexpr int64_t kSides = 64 / sizeof(T);

// Solves with a small lower triangular matrix, which `a` holds in column-major order.
template <typename T>
void SolveBlock(Diagonal diagonal, const T* a, const MatrixView<T>& b) {
  const int64_t size = b.rows;
  alignas(64) T x[kBlock * kSides<T>];
  for (int64_t j0 = 0; j0 < b.columns; j0 += kSides<T>) {
    const int64_t width = std::min(kSides<T>, b.columns - j0);
    std::fill_n(x, size * kSides<T>, T(0));
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < size; ++i) x[i * kSides<T> + j] = b(i, j0 + j);
    }
    for (int64_t k = 0; k < size; ++k) {
      T* solved = x + k * kSides<T>;
      if (diagonal == Diagonal::kOwn) {
        for (int64_t j = 0; j < width; ++j) solved[j] /= a[k * kBlock + k];
      }
      for (int64_t i = k + 1; i < size; ++i) {
        const T factor = a[k * kBlock + i];
        T* to = x + i * kSides<T>;
        for (int64_t j = 0; j < kSides<T>; ++j) to[j] -= Product(factor, solved[j]);
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < size; ++i) b(i, j0 + j) = x[i * kSides<T> + j];
    }
  }
}

}  // namespace

template <typename T>
void SolveTriangular(Triangle triangle, Diagonal diagonal,
                     const MatrixView<const std::type_identity_t<T>>& a, const MatrixView<T>& b) {
  if (b.rows == 0 || b.columns == 0) return;
  if (triangle == Triangle::kUpper) {
    return SolveTriangular(Triangle::kLower, diagonal, a.UpsideDown().Mirrored(), b.UpsideDown());
  }
  Scratch<T> block(kBlock * kBlock);
  for (int64_t first = 0; first < b.rows; first += kBlock) {
    const int64_t size = std::min(kBlock, b.rows - first), rest = b.rows - first - size;
    for (int64_t j = 0; j < size; ++j) {
      for (int64_t i = j; i < size; ++i) {
        block[static_cast<std::size_t>(j * kBlock + i)] = a(first + i, first + j);
      }
    }
    const MatrixView<T> solved = b.Block(first, 0, size, b.columns);
    SolveBlock(diagonal, block.data(), solved);
    if (rest == 0) break;
    AddProduct(b.Block(first + size, 0, rest, b.columns), -1,
               a.Block(first + size, first, rest, size), Const(solved));
  }
}

#define AOTI_INSTANTIATE(T)                                                     \
  template void SolveTriangular(Triangle, Diagonal, const MatrixView<const T>&, \
                                const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
