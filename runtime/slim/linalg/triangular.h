// Triangular systems of equations.

#ifndef AOTI_RUNTIME_SLIM_LINALG_TRIANGULAR_H_
#define AOTI_RUNTIME_SLIM_LINALG_TRIANGULAR_H_

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

enum class Triangle { kLower, kUpper };
enum class Diagonal { kOwn, kOnes };  // kOnes: treated as ones, without reading them

// Solves a x = b; x replaces b. Only the triangle of a is read. As in BLAS, a zero on the diagonal
// results in infinities and NaNs.
template <typename T>
void SolveTriangular(Triangle triangle, Diagonal diagonal,
                     const MatrixView<const std::type_identity_t<T>>& a, const MatrixView<T>& b);

// Solves x a = b.
template <typename T>
void SolveTriangularFromRight(Triangle triangle, Diagonal diagonal,
                              const MatrixView<const std::type_identity_t<T>>& a,
                              const MatrixView<T>& b) {
  const Triangle other = triangle == Triangle::kLower ? Triangle::kUpper : Triangle::kLower;
  SolveTriangular(other, diagonal, a.Transposed(), b.Transposed());
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_TRIANGULAR_H_
