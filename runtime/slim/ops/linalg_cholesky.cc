// Cholesky factorisation, and solvers and inverses based on it.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/linalg/cholesky.h"
#include "runtime/slim/linalg/triangular.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// Sets the other triangle to 0.
template <typename T>
void KeepTriangle(const MatrixView<T>& a, bool upper) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    const std::int64_t first = upper ? j + 1 : 0, last = upper ? a.rows : std::min(j, a.rows);
    for (std::int64_t i = first; i < last; ++i) a(i, j) = T(0);
  }
}

// self, upper, check_errors
void CholeskyEx(StableIValue* stack) {
  const char* name = "linalg.cholesky_ex";
  const TensorPtr self = TakeTensor(stack[0]);
  const bool upper = TakeBool(stack[1]), check = TakeBool(stack[2]);
  RequireSquare(name, *self);
  TensorPtr factor, info = Empty(ScalarType::kInt32, Leading(*self, 2));
  DispatchLinalg(name, self->dtype(), [&]<typename T>() {
    factor = ColumnMajorCopy(*self);
    const Matrices<T> matrices(*factor);
    const std::int64_t size = matrices.rows();
    ForEachMatrix(matrices.count(), size * size * size / 3, [&](std::int64_t i) {
      KeepTriangle(matrices[i], upper);
      // The transpose of a is its conjugate, and the transposed factor of the conjugate is the
      // upper factor of a.
      info->data<std::int32_t>()[i] =
          FactorCholesky(upper ? matrices[i].Transposed() : matrices[i]);
    });
  });
  if (check) CheckInfo(name, *info);
  stack[0] = Give(std::move(factor));
  stack[1] = Give(std::move(info));
}

// b = (l l^H)^-1 b, or b = (u^H u)^-1 b.
template <typename T>
void SolveCholesky(const MatrixView<const T>& factor, bool upper, const MatrixView<T>& b) {
  const std::int64_t size = factor.rows;
  Scratch<T> memory(static_cast<std::size_t>(kComplex<T> ? size * size : 0));
  MatrixView<const T> conjugated = factor;
  if constexpr (kComplex<T>) {
    const MatrixView<T> copy = ColumnMajor(memory.data(), size, size);
    CopyMatrix(copy, factor);
    ConjugateMatrix(copy);
    conjugated = Const(copy);
  }
  const MatrixView<const T> adjoint = conjugated.Transposed();
  SolveTriangular(Triangle::kLower, Diagonal::kOwn, upper ? adjoint : factor, b);
  SolveTriangular(Triangle::kUpper, Diagonal::kOwn, upper ? factor : adjoint, b);
}

TensorPtr CholeskySolve(const Tensor& b, const Tensor& factor, bool upper) {
  const char* name = "cholesky_solve";
  RequireSystem(name, factor, b, /*left=*/true);
  Shape batch = BroadcastSizes(Leading(b, 2), Leading(factor, 2));
  Shape sizes = batch;
  sizes.Append(b.sizes().last(2));
  TensorPtr result;
  DispatchLinalg(name, b.dtype(), [&]<typename T>() {
    result = ColumnMajorCopy(b, sizes);
    const Matrices<T> sides(*result);
    const Matrices<const T> factors(factor, batch);
    ForEachMatrix(sides.count(), 2 * sides.rows() * sides.rows() * sides.columns(),
                  [&](std::int64_t i) { SolveCholesky(factors[i], upper, sides[i]); });
  });
  return result;
}

TensorPtr CholeskyInverse(const Tensor& factor, bool upper) {
  const char* name = "cholesky_inverse";
  RequireSquare(name, factor);
  TensorPtr result;
  DispatchLinalg(name, factor.dtype(), [&]<typename T>() {
    result = EmptyColumnMajor(factor.dtype(), factor.sizes());
    const Matrices<T> inverses(*result);
    const Matrices<const T> factors(factor);
    const std::int64_t size = factors.rows();
    ForEachMatrix(factors.count(), 2 * size * size * size, [&](std::int64_t i) {
      MakeIdentity(inverses[i]);
      SolveCholesky(factors[i], upper, inverses[i]);
    });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_cholesky_ex, "aten::linalg_cholesky_ex", "",
                        aoti::slim::CholeskyEx)

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_cholesky_solve(AtenTensorHandle self, AtenTensorHandle input2,
                                             int32_t upper, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::CholeskySolve(*self, *input2, upper != 0).release(); });
}

AOTITorchError aoti_torch_cpu_cholesky_inverse(AtenTensorHandle self, int32_t upper,
                                               AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::CholeskyInverse(*self, upper != 0).release(); });
}

}  // extern "C"
