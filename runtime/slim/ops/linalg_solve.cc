// Systems of equations and inverses, by LU factorisation.

#include <algorithm>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/lu.h"
#include "runtime/slim/ops/linalg.h"
#include "runtime/slim/ops/linalg_lu.h"

namespace aoti::slim {
namespace {

// A, check_errors
void InvEx(StableIValue* stack) {
  const char* name = "linalg.inv_ex";
  const TensorPtr a = TakeTensor(stack[0]);
  const bool check = TakeBool(stack[1]);
  RequireSquare(name, *a);
  LuFactors f = FactorizeLu(name, *a);
  if (check) CheckInfo(name, *f.info);
  TensorPtr result = EmptyColumnMajor(a->dtype(), a->sizes());
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    const Matrices<const T> factors(*f.lu);
    const Matrices<T> inverses(*result);
    const std::int64_t size = factors.rows();
    ForEachMatrix(factors.count(), 2 * size * size * size, [&](std::int64_t i) {
      MakeIdentity(inverses[i]);
      SolveLu(factors[i], f.pivots->data<std::int32_t>() + i * size, inverses[i]);
    });
  });
  stack[0] = Give(std::move(result));
  stack[1] = Give(std::move(f.info));
}

// The system that is solved, with the LU factors of a.
struct System {
  const Tensor& lu;
  const Tensor& pivots;
  bool left;     // a x = b, otherwise x a = b
  bool adjoint;  // a^H in place of a
};

// b: [..., rows, columns], dense; the leading dims of lu are broadcast to those of b. x replaces b.
void SolveAll(const char* name, const System& system, const Tensor& b) {
  DispatchLinalg(name, b.dtype(), [&]<typename T>() {
    const Shape batch = Leading(b, 2);
    const Matrices<T> sides(b);
    const Matrices<const T> factors(system.lu, batch);
    const Matrices<const std::int32_t> pivots(*AsColumns(system.pivots), batch);
    const std::int64_t size = factors.rows();
    ForEachMatrix(sides.count(), 2 * sides.rows() * sides.columns() * size, [&](std::int64_t i) {
      const MatrixView<T> side = system.left ? sides[i] : sides[i].Transposed();
      // conj(a) x = b has the conjugate of the solution of a x = conj(b).
      if (system.adjoint) ConjugateMatrix(side);
      if (system.left == system.adjoint) {
        SolveLuTransposed(factors[i], pivots[i].data, side);
      } else {
        SolveLu(factors[i], pivots[i].data, side);
      }
      if (system.adjoint) ConjugateMatrix(side);
    });
  });
}

// A dense copy of b, broadcast to a's leading dims, with contiguous columns or rows.
TensorPtr Sides(const Tensor& a, const Tensor& b, bool by_columns) {
  Shape sizes = BroadcastSizes(Leading(b, 2), Leading(a, 2));
  sizes.Append(b.sizes().last(2));
  if (by_columns) return ColumnMajorCopy(b, sizes);
  TensorPtr copy = Empty(b.dtype(), sizes);
  Copy(*copy, b);
  return copy;
}

// A, B, left, check_errors
void SolveEx(StableIValue* stack) {
  const char* name = "linalg.solve_ex";
  const TensorPtr a = TakeTensor(stack[0]), given = TakeTensor(stack[1]);
  const bool left = TakeBool(stack[2]), check = TakeBool(stack[3]);
  RequireSquare(name, *a);
  const Shape vectors = Leading(*a, 1);
  const bool vector =
      given->rank() == 1 ||
      (given->rank() == a->rank() - 1 &&
       std::equal(given->sizes().begin(), given->sizes().end(), Ints(vectors).begin()));
  Require(left || !vector, name, ": B is a vector, must be a matrix if left is false");
  const TensorPtr b = vector ? AsColumns(*given) : std::make_unique<Tensor>(*given);
  RequireSystem(name, *a, *b, left);
  TensorPtr result = Sides(*a, *b, left);
  LuFactors f = FactorizeLu(name, *a);
  if (check) CheckInfo(name, *f.info);
  SolveAll(name, {.lu = *f.lu, .pivots = *f.pivots, .left = left, .adjoint = false}, *result);
  if (vector) {
    TensorPtr flat = EmptyColumnMajor(result->dtype(), Leading(*result, 1));
    Copy(*flat, *View(*result, flat->sizes(),
                      result->strides().first(static_cast<std::size_t>(result->rank() - 1)),
                      result->offset()));
    result = std::move(flat);
  }
  stack[0] = Give(std::move(result));
  stack[1] = Give(std::move(f.lu));
  stack[2] = Give(std::move(f.pivots));
  stack[3] = Give(std::move(f.info));
}

// LU, pivots, B, left, adjoint
void LuSolve(StableIValue* stack) {
  const char* name = "linalg.lu_solve";
  const TensorPtr lu = TakeTensor(stack[0]), pivots = TakeTensor(stack[1]),
                  b = TakeTensor(stack[2]);
  const bool left = TakeBool(stack[3]), adjoint = TakeBool(stack[4]);
  RequireSystem(name, *lu, *b, left);
  const TensorPtr dense = CheckedPivots(name, *lu, *pivots);
  TensorPtr result = Sides(*lu, *b, left);
  SolveAll(name, {.lu = *lu, .pivots = *dense, .left = left, .adjoint = adjoint}, *result);
  stack[0] = Give(std::move(result));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_inv_ex, "aten::linalg_inv_ex", "", aoti::slim::InvEx)
AOTI_SLIM_DISPATCHER_OP(aten__linalg_solve_ex, "aten::_linalg_solve_ex", "", aoti::slim::SolveEx)
AOTI_SLIM_DISPATCHER_OP(aten_linalg_lu_solve, "aten::linalg_lu_solve", "", aoti::slim::LuSolve)
