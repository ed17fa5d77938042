// Eigenvalues and eigenvectors of square matrices without symmetry.

#ifndef AOTI_RUNTIME_SLIM_LINALG_EIG_H_
#define AOTI_RUNTIME_SLIM_LINALG_EIG_H_

#include <complex>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a vectors = vectors diag(values). Each vector has the norm 1, and its largest number is real.
// Those of a real matrix are real or come in conjugate pairs, the one with the positive imaginary
// part first. a is overwritten; the columns of a and vectors must be contiguous. Returns false if
// the algorithm did not converge, or if there are NaNs or infinities.
template <typename T>
bool FactorGeneral(const MatrixView<T>& a, std::complex<Real<T>>* values,
                   const MatrixView<std::complex<Real<T>>>& vectors);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_EIG_H_
