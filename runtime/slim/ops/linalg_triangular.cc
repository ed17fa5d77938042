// Triangular systems.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/linalg/triangular.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// Which elements of a are used, and on which side of the unknowns a is.
struct Options {
  Triangle triangle;
  Diagonal diagonal;
  bool left;
};

TensorPtr Solve(const char* name, const Tensor& a, const Tensor& b, const Options& options) {
  RequireSystem(name, a, b, options.left);
  const Shape batch = BroadcastSizes(Leading(b, 2), Leading(a, 2));
  Shape sizes = batch;
  sizes.Append(b.sizes().last(2));
  TensorPtr result;
  DispatchLinalg(name, a.dtype(), [&]<typename T>() {
    result = ColumnMajorCopy(b, sizes);
    const Matrices<T> sides(*result);
    const Matrices<const T> matrices(a, batch);
    ForEachMatrix(
        sides.count(), matrices.rows() * sides.rows() * sides.columns(), [&](std::int64_t i) {
          if (options.left) {
            SolveTriangular(options.triangle, options.diagonal, matrices[i], sides[i]);
          } else {
            SolveTriangularFromRight(options.triangle, options.diagonal, matrices[i], sides[i]);
          }
        });
  });
  return result;
}

Triangle TriangleOf(bool upper) { return upper ? Triangle::kUpper : Triangle::kLower; }
Diagonal DiagonalOf(bool ones) { return ones ? Diagonal::kOnes : Diagonal::kOwn; }

// A, B, upper, left, unitriangular
void LinalgSolveTriangular(StableIValue* stack) {
  const TensorPtr a = TakeTensor(stack[0]), b = TakeTensor(stack[1]);
  stack[0] = Give(Solve("linalg.solve_triangular", *a, *b,
                        {.triangle = TriangleOf(TakeBool(stack[2])),
                         .diagonal = DiagonalOf(TakeBool(stack[4])),
                         .left = TakeBool(stack[3])}));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_solve_triangular, "aten::linalg_solve_triangular", "",
                        aoti::slim::LinalgSolveTriangular)

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu_triangular_solve(AtenTensorHandle self, AtenTensorHandle A,
                                               int32_t upper, int32_t transpose,
                                               int32_t unitriangular, AtenTensorHandle* ret0,
                                               AtenTensorHandle* ret1) {
  return Guarded([&] {
    const char* name = "triangular_solve";
    RequireSystem(name, *A, *self, /*left=*/true);
    Shape sizes(A->sizes()), strides(A->strides());
    if (transpose != 0) {
      const auto rank = static_cast<std::size_t>(A->rank());
      std::swap(sizes[rank - 2], sizes[rank - 1]);
      std::swap(strides[rank - 2], strides[rank - 1]);
    }
    TensorPtr solution = Solve(name, *View(*A, sizes, strides, A->offset()), *self,
                               {.triangle = TriangleOf((upper != 0) != (transpose != 0)),
                                .diagonal = DiagonalOf(unitriangular != 0),
                                .left = true});
    Shape copied(solution->sizes().first(static_cast<std::size_t>(solution->rank() - 2)));
    copied.Append(A->sizes().last(2));
    *ret1 = ColumnMajorCopy(*A, copied).release();
    *ret0 = solution.release();
  });
}

}  // extern "C"
