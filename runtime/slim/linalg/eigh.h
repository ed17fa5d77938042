// Eigenvalues and eigenvectors of symmetric and hermitian matrices.

#ifndef AOTI_RUNTIME_SLIM_LINALG_EIGH_H_
#define AOTI_RUNTIME_SLIM_LINALG_EIGH_H_

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a = q diag(values) q^H, with ascending values. Only the lower triangle of a is read, and a is
// overwritten; the columns of a and q must be contiguous. If q.data is null, only the values are
// computed. Returns false if the algorithm did not converge, or if there are NaNs or infinities.
template <typename T>
bool FactorHermitian(const MatrixView<T>& a, Real<T>* values, const MatrixView<T>& q);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_EIGH_H_
