// The preparation of a matrix for its eigenvalues: balancing, and Hessenberg form.

#ifndef AOTI_RUNTIME_SLIM_LINALG_HESSENBERG_H_
#define AOTI_RUNTIME_SLIM_LINALG_HESSENBERG_H_

#include <cstdint>

#include "runtime/slim/linalg/matrix.h"

namespace aoti::slim {

// A similarity of a matrix that exchanges rows and columns, so that it is triangular outside of
// rows and columns first..last, and scales these by powers of two, so that rows and columns have
// similar norms. With it eigenvalues of badly scaled matrices are as accurate as their numbers are.
template <typename T>
class Balance {
 public:
  // Changes the square matrix a, which must be finite and have contiguous columns.
  explicit Balance(const MatrixView<T>& a);

  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }
  // Makes eigenvectors of the changed matrix (columns of v) eigenvectors of the original one.
  template <typename V>
  void Undo(const MatrixView<V>& v) const;

 private:
  void Isolate(const MatrixView<T>& a);
  void Exchange(const MatrixView<T>& a, std::int64_t from, std::int64_t to);
  void Scale(const MatrixView<T>& a);

  std::int64_t first_ = 0, last_;
  Scratch<std::int64_t> exchanged_;  // with which row, outside of first..last
  Scratch<Real<T>> scales_;
};

// a = q h q^H, where h is zero below the diagonal next to the main one. h replaces a, which must be
// triangular already outside of rows and columns first..last. The columns of a and q must be
// contiguous.
template <typename T>
void FactorHessenberg(const MatrixView<T>& a, std::int64_t first, std::int64_t last,
                      const MatrixView<T>& q);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_LINALG_HESSENBERG_H_
