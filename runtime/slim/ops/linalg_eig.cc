// Eigenvalues and eigenvectors of matrices without symmetry.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/eig.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

ScalarType ComplexDType(ScalarType dtype) {
  if (dtype == ScalarType::kFloat32) return ScalarType::kComplex64;
  return dtype == ScalarType::kFloat64 ? ScalarType::kComplex128 : dtype;
}

// self
void Eig(StableIValue* stack) {
  const char* name = "linalg.eig";
  const TensorPtr a = TakeTensor(stack[0]);
  RequireSquare(name, *a);
  TensorPtr values, vectors;
  const TensorPtr info = Empty(ScalarType::kInt32, Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    using Complex = std::complex<Real<T>>;
    values = Empty(ComplexDType(a->dtype()), Leading(*a, 1));
    vectors = EmptyColumnMajor(values->dtype(), a->sizes());
    const TensorPtr copy = ColumnMajorCopy(*a);
    const Matrices<T> from(*copy);
    const Matrices<Complex> to(*vectors);
    const std::int64_t size = from.rows();
    ForEachMatrix(from.count(), 25 * size * size * size, [&](std::int64_t i) {
      const bool done = FactorGeneral(from[i], values->data<Complex>() + i * size, to[i]);
      info->data<std::int32_t>()[i] = done ? 0 : 1;
    });
  });
  CheckInfo(name, *info);
  stack[0] = Give(std::move(values));
  stack[1] = Give(std::move(vectors));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_eig, "aten::linalg_eig", "", aoti::slim::Eig)
