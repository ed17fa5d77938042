// Symmetric and hermitian matrices that need not be definite: factors, and solutions with them.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/ldl.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

Symmetry SymmetryOf(bool hermitian) {
  return hermitian ? Symmetry::kConjugated : Symmetry::kTransposed;
}

// self, hermitian, check_errors
void LdlFactorEx(StableIValue* stack) {
  const char* name = "linalg.ldl_factor_ex";
  const TensorPtr a = TakeTensor(stack[0]);
  const Symmetry symmetry = SymmetryOf(TakeBool(stack[1]));
  const bool check = TakeBool(stack[2]);
  RequireSquare(name, *a);
  TensorPtr ldl, pivots = Empty(ScalarType::kInt32, Leading(*a, 1)),
                 info = Empty(ScalarType::kInt32, Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    ldl = EmptyColumnMajor(a->dtype(), a->sizes());
    const Matrices<const T> given(*a);
    const Matrices<T> factors(*ldl);
    const std::int64_t size = factors.rows();
    ForEachMatrix(factors.count(), size * size * size / 3, [&](std::int64_t i) {
      const MatrixView<T> factor = factors[i];
      for (std::int64_t j = 0; j < size; ++j) {
        for (std::int64_t k = 0; k < size; ++k) factor(k, j) = k < j ? T(0) : given[i](k, j);
      }
      info->data<std::int32_t>()[i] =
          FactorLdl(factor, pivots->data<std::int32_t>() + i * size, symmetry);
    });
  });
  if (check) CheckInfo(name, *info);
  stack[0] = Give(std::move(ldl));
  stack[1] = Give(std::move(pivots));
  stack[2] = Give(std::move(info));
}

// LD, pivots, B, hermitian
void LdlSolve(StableIValue* stack) {
  const char* name = "linalg.ldl_solve";
  const TensorPtr ldl = TakeTensor(stack[0]), given = TakeTensor(stack[1]),
                  b = TakeTensor(stack[2]);
  const Symmetry symmetry = SymmetryOf(TakeBool(stack[3]));
  RequireSystem(name, *ldl, *b, /*left=*/true);
  const Shape expected = Leading(*ldl, 1), batch = BroadcastSizes(Leading(*b, 2), Leading(*ldl, 2));
  Require(given->dtype() == ScalarType::kInt32, name, ": the pivots are ", NameOf(given->dtype()),
          ", must be int32");
  Require(std::equal(given->sizes().begin(), given->sizes().end(), Ints(expected).begin(),
                     Ints(expected).end()),
          name, ": the sizes of the pivots do not match those of LD");
  const TensorPtr pivots = Contiguous(*given);
  const std::int64_t size = ldl->size(ldl->rank() - 1);
  for (std::int64_t at = 0; at < pivots->numel(); at += size) {
    Require(CheckLdlPivots(size, pivots->data<std::int32_t>() + at), name,
            ": the pivots can't belong to LD: they must be row numbers in 1..", size,
            ", and negative ones must come in equal pairs");
  }
  Shape sizes = batch;
  sizes.Append(b->sizes().last(2));
  TensorPtr result;
  DispatchLinalg(name, b->dtype(), [&]<typename T>() {
    result = ColumnMajorCopy(*b, sizes);
    const Matrices<T> sides(*result);
    const Matrices<const T> factors(*ldl, batch);
    const Matrices<const std::int32_t> rows(*AsColumns(*pivots), batch);
    ForEachMatrix(sides.count(), 2 * size * size * sides.columns(),
                  [&](std::int64_t i) { SolveLdl(factors[i], rows[i].data, symmetry, sides[i]); });
  });
  stack[0] = Give(std::move(result));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_ldl_factor_ex, "aten::linalg_ldl_factor_ex", "",
                        aoti::slim::LdlFactorEx)
AOTI_SLIM_DISPATCHER_OP(aten_linalg_ldl_solve, "aten::linalg_ldl_solve", "", aoti::slim::LdlSolve)
