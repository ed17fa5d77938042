// Eigenvalues and eigenvectors of symmetric and hermitian matrices.

#include <optional>
#include <string_view>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/eigh.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// A, UPLO, compute_v
void Eigh(StableIValue* stack) {
  const char* name = "linalg.eigh";
  const TensorPtr a = TakeTensor(stack[0]);
  const TakenText triangle(stack[1]);
  const bool vectors = TakeBool(stack[2]);
  const std::string_view uplo = triangle.view();
  const bool upper = uplo == "U" || uplo == "u";
  Require(upper || uplo == "L" || uplo == "l", name, ": UPLO is \"", uplo,
          "\", must be \"L\" or \"U\"");
  RequireSquare(name, *a);
  TensorPtr values = Empty(RealDType(a->dtype()), Leading(*a, 1)), q;
  const TensorPtr info = Empty(ScalarType::kInt32, Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    const TensorPtr copy = EmptyColumnMajor(a->dtype(), a->sizes());
    q = vectors ? EmptyColumnMajor(a->dtype(), a->sizes()) : Empty(a->dtype(), {0});
    const Matrices<const T> given(*a);
    const Matrices<T> from(*copy);
    std::optional<Matrices<T>> factors;
    if (vectors) factors.emplace(*q);
    const std::int64_t size = from.rows();
    ForEachMatrix(from.count(), 9 * size * size * size, [&](std::int64_t i) {
      CopyMatrix(from[i], upper ? given[i].Transposed() : given[i]);
      if (upper) ConjugateMatrix(from[i]);
      const MatrixView<T> none = {nullptr, size, size, 1, size};
      const bool done = FactorHermitian(from[i], values->data<Real<T>>() + i * size,
                                        vectors ? (*factors)[i] : none);
      info->data<std::int32_t>()[i] = done ? 0 : 1;
    });
  });
  CheckInfo(name, *info);
  stack[0] = Give(std::move(values));
  stack[1] = Give(std::move(q));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__linalg_eigh, "aten::_linalg_eigh", "", aoti::slim::Eigh)
