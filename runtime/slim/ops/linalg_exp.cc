// The exponential of matrices.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/exp.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

void MatrixExp(StableIValue* stack) {
  const char* name = "linalg.matrix_exp";
  const TensorPtr a = TakeTensor(stack[0]);
  RequireSquare(name, *a);
  TensorPtr result;
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    result = Empty(a->dtype(), a->sizes());
    Copy(*result, *a);
    const Matrices<T> matrices(*result);
    const std::int64_t size = matrices.rows();
    // The exponential of the transpose is the transpose of the exponential.
    ForEachMatrix(matrices.count(), 20 * size * size * size,
                  [&](std::int64_t i) { Exponentiate(matrices[i].Transposed()); });
  });
  stack[0] = Give(std::move(result));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_matrix_exp, "aten::linalg_matrix_exp", "",
                        aoti::slim::MatrixExp)
