// Factorisation of symmetric and hermitian matrices that need not be definite, by Bunch and
// Kaufman's diagonal pivoting.

#ifndef AOTI_RUNTIME_SLIM_LINALG_LDL_H_
#define AOTI_RUNTIME_SLIM_LINALG_LDL_H_

#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// Whether the upper triangle of a matrix is the transpose of the lower one, or its conjugate too.
enum class Symmetry { kTransposed, kConjugated };

// a = p l d l^T p^T, or with l^H: the lower triangle of a, whose columns must be contiguous, is
// replaced by l (with ones on the diagonal, which are not stored) and by d, which consists of
// blocks of one or two rows. The upper triangle is not used. As in LAPACK, pivots[k] = i is a block
// of one row that was exchanged with row i - 1; pivots[k] = pivots[k + 1] = -i is a block of two,
// whose second row was exchanged with row i - 1. Returns 0, or the number (from 1) of the first
// block of d that is 0.
template <typename T>
std::int32_t FactorLdl(const MatrixView<T>& a, std::int32_t* pivots, Symmetry symmetry);

// Solves a x = b, where ldl is the result of FactorLdl() for a; x replaces b, whose columns must be
// contiguous. The pivots must be valid: see CheckLdlPivots().
template <typename T>
void SolveLdl(const MatrixView<const std::type_identity_t<T>>& ldl, const std::int32_t* pivots,
              Symmetry symmetry, const MatrixView<T>& b);

// Whether `size` pivots describe blocks and rows of a matrix of this size.
bool CheckLdlPivots(std::int64_t size, const std::int32_t* pivots);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_LDL_H_
