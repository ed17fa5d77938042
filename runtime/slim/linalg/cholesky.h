// Cholesky factorisation.

#ifndef AOTI_RUNTIME_SLIM_LINALG_CHOLESKY_H_
#define AOTI_RUNTIME_SLIM_LINALG_CHOLESKY_H_

#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a = l l^H: l replaces the lower triangle of a; the elements above it are not touched. Returns 0,
// or the order of the first leading minor that is not positive, in which case the factorisation
// stops there.
template <typename T>
std::int32_t FactorCholesky(const MatrixView<T>& a);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_CHOLESKY_H_
