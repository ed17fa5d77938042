// Singular values and vectors.

#ifndef AOTI_RUNTIME_SLIM_LINALG_SVD_H_
#define AOTI_RUNTIME_SLIM_LINALG_SVD_H_

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a = u diag(values) v^H, with descending values, for an a with at least as many rows as columns; a
// is overwritten. u has as many columns as a, or is square; v is square. All columns must be
// contiguous. If u.data is null, only the values are computed. Returns false if the algorithm did
// not converge, or if there are NaNs or infinities.
template <typename T>
bool FactorSvd(const MatrixView<T>& a, Real<T>* values, const MatrixView<T>& u,
               const MatrixView<T>& v);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_SVD_H_
