// Batches of matrices, for the linear algebra operators.

#ifndef AOTI_RUNTIME_SLIM_OPS_LINALG_H_
#define AOTI_RUNTIME_SLIM_OPS_LINALG_H_

#include <algorithm>
#include <complex>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/linalg/matrix.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Calls function.operator()<T>(), where T is float, double, or std::complex of either.
template <typename Function>
decltype(auto) DispatchLinalg(const char* name, ScalarType dtype, const Function& function) {
  switch (dtype) {
    case ScalarType::kFloat32:
      return function.template operator()<float>();
    case ScalarType::kFloat64:
      return function.template operator()<double>();
    case ScalarType::kComplex64:
      return function.template operator()<std::complex<float>>();
    case ScalarType::kComplex128:
      return function.template operator()<std::complex<double>>();
    default:
      throw OpError(StrCat(name, ": the matrix is ", NameOf(dtype),
                           ", must be float32, float64, complex64 or complex128"));
  }
}

// The dtype of real results, such as singular values.
ScalarType RealDType(ScalarType dtype);

void RequireMatrices(const char* name, const Tensor& a);
void RequireSquare(const char* name, const Tensor& a);
// Throws OpError unless a and b make systems a x = b, or x a = b.
void RequireSystem(const char* name, const Tensor& a, const Tensor& b, bool left);

// The sizes without the last `count` dims, followed by `more`.
Shape Leading(const Tensor& a, std::int64_t count, std::initializer_list<std::int64_t> more = {});

// A dense batch of matrices with contiguous columns, like PyTorch's results.
TensorPtr EmptyColumnMajor(ScalarType dtype, Ints sizes);
TensorPtr ColumnMajorCopy(const Tensor& from);
TensorPtr ColumnMajorCopy(const Tensor& from, Ints sizes);  // broadcasts `from`

// A view of vectors as matrices with one column, whose batch can be broadcast.
TensorPtr AsColumns(const Tensor& vectors);

// The matrices of a batch, in row-major order of the leading dims.
template <typename T>
class Matrices {
 public:
  // All matrices of the tensor.
  explicit Matrices(const Tensor& a) : Matrices(a, Leading(a, 2)) {}
  // With the leading dims of `a` broadcast to `batch`.
  Matrices(const Tensor& a, Ints batch)
      : first_{const_cast<T*>(a.data<T>()), a.size(a.rank() - 2), a.size(a.rank() - 1),
               a.stride(a.rank() - 2), a.stride(a.rank() - 1)},
        offsets_(static_cast<std::size_t>(NumElements(batch))) {
    const auto leading = static_cast<std::size_t>(a.rank() - 2);
    const Shape strides =
        BroadcastStrides(a.sizes().first(leading), a.strides().first(leading), batch);
    std::size_t i = 0;
    ForEachOffset(batch, {strides}, [&](const std::int64_t* at) { offsets_[i++] = at[0]; });
  }

  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()); }
  std::int64_t rows() const { return first_.rows; }
  std::int64_t columns() const { return first_.columns; }
  MatrixView<T> operator[](std::int64_t i) const {
    MatrixView<T> matrix = first_;
    matrix.data += offsets_[static_cast<std::size_t>(i)];
    return matrix;
  }

 private:
  MatrixView<T> first_;
  Scratch<std::int64_t> offsets_;
};

// Calls body(i) for i = 0..count-1, on several threads if there is enough work. work: the
// approximate number of operations of one call.
template <typename Body>
void ForEachMatrix(std::int64_t count, std::int64_t work, const Body& body) {
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(i);
  };
  // With fewer matrices than threads, the threads work together on each matrix.
  if (count < internal::MaxThreads()) return run(0, count);
  internal::ParallelFor(0, count, (1 << 16) / std::max<std::int64_t>(work, 1), run);
}

// Throws if `info` (int32, one number for each matrix) says that `name` failed. As in PyTorch, the
// meaning of a number depends on the end of the name.
void CheckInfo(std::string_view name, const Tensor& info);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_LINALG_H_
