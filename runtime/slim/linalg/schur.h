// The Schur form of a matrix, by QR steps.

#ifndef AOTI_RUNTIME_SLIM_LINALG_SCHUR_H_
#define AOTI_RUNTIME_SLIM_LINALG_SCHUR_H_

#include <complex>
#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// Makes the Hessenberg matrix h upper triangular by a unitary similarity, which it also applies to
// the columns of q. h must be triangular already outside of rows and columns first..last, and
// finite. A pair of conjugate eigenvalues of a real matrix stays a block [[a, b], [c, a]] on the
// diagonal, and the first one of the pair has the positive imaginary part. The columns of h and q
// must be contiguous. Returns false if the algorithm did not converge.
template <typename T>
bool FactorSchur(const MatrixView<T>& h, std::int64_t first, std::int64_t last,
                 std::complex<Real<T>>* values, const MatrixView<T>& q);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_SCHUR_H_
