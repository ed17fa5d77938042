// The exponential of a matrix.

#ifndef AOTI_RUNTIME_SLIM_LINALG_EXP_H_
#define AOTI_RUNTIME_SLIM_LINALG_EXP_H_

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// Replaces the square matrix a by 1 + a + a^2 / 2! + ... The result is NaN if a has NaNs or
// infinities.
template <typename T>
void Exponentiate(const MatrixView<T>& a);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_EXP_H_
