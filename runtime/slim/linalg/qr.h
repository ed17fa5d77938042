// Householder reflectors with LAPACK's signs, QR factorisation, and algorithms based on it.

#ifndef AOTI_RUNTIME_SLIM_LINALG_QR_H_
#define AOTI_RUNTIME_SLIM_LINALG_QR_H_

#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// Makes a reflector h = 1 - tau v v^H with h^H x = (beta, 0, ...): x becomes (beta, v[1], ...),
// where v[0] is 1, and beta is real. Returns tau.
template <typename T>
T MakeReflector(std::int64_t size, T* x);

// a = q r: r replaces the upper triangle of a. Below it are the reflectors whose product is q,
// together with taus[0] to taus[min(rows, columns) - 1]. The columns of a must be contiguous.
template <typename T>
void FactorQr(const MatrixView<T>& a, T* taus);

// b = q b, where q is the product of `count` reflectors, which FactorQr() stored in a matrix with
// as many rows as b. kAdjoint: b = q^H b.
enum class Factor { kOwn, kAdjoint };
template <typename T>
void MultiplyByQ(const MatrixView<const std::type_identity_t<T>>& reflectors,
                 const std::type_identity_t<T>* taus, std::int64_t count, const MatrixView<T>& b,
                 Factor factor = Factor::kOwn);

// The same with b = b q, for reflectors of as many rows as b has columns.
template <typename T>
void MultiplyByQFromRight(const MatrixView<const std::type_identity_t<T>>& reflectors,
                          const std::type_identity_t<T>* taus, std::int64_t count,
                          const MatrixView<T>& b, Factor factor) {
  // The transpose of b q is q^T b^T, the conjugate of q^H conj(b^T).
  const Factor other = factor == Factor::kOwn ? Factor::kAdjoint : Factor::kOwn;
  ConjugateMatrix(b);
  MultiplyByQ(reflectors, taus, count, b.Transposed(), other);
  ConjugateMatrix(b);
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_QR_H_
