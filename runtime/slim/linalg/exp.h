// The exponential of a matrix.

#ifndef AOTI_RUNTIME_SLIM_LINALG_EXP_H_
#define AOTI_RUNTIME_SLIM_LINALG_EXP_H_

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a, square, becomes 1 + a + a^2 / 2! + ... NaNs where a has NaNs or infinities.
template <typename T>
void Exponentiate(const MatrixView<T>& a);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_EXP_H_
