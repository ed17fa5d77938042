// LU factorisation with partial pivoting.

#ifndef AOTI_RUNTIME_SLIM_LINALG_LU_H_
#define AOTI_RUNTIME_SLIM_LINALG_LU_H_

#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// a = p l u: l (below the diagonal, with ones on it) and u replace a, whose columns must be
// contiguous. Row i was exchanged with row pivots[i] - 1, for i = 0, 1, ... Returns 0, or the
// number (from 1) of the first zero on u's diagonal.
template <typename T>
std::int32_t FactorLu(const MatrixView<T>& a, std::int32_t* pivots);

// Exchanges the rows of b as FactorLu() did, or undoes it. There are `count` pivots, all within b's
// rows.
enum class Direction { kForward, kBackward };
template <typename T>
void ExchangeRows(const MatrixView<T>& b, const std::int32_t* pivots, std::int64_t count,
                  Direction direction);

// Solves a x = b, where lu is the result of FactorLu() for a; x replaces b.
template <typename T>
void SolveLu(const MatrixView<const std::type_identity_t<T>>& lu, const std::int32_t* pivots,
             const MatrixView<T>& b);
// The same for the transpose of a.
template <typename T>
void SolveLuTransposed(const MatrixView<const std::type_identity_t<T>>& lu,
                       const std::int32_t* pivots, const MatrixView<T>& b);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_LU_H_
