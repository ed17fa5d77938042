// Singular value decomposition.

#include <optional>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/svd.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// to = from^H
template <typename T>
void CopyAdjoint(const MatrixView<T>& to, const MatrixView<const T>& from) {
  CopyMatrix(to, from.Transposed());
  ConjugateMatrix(to);
}

// Decomposes one matrix: u and vh are null if only the values are requested.
template <typename T>
bool DecomposeSvd(const MatrixView<const T>& a, Real<T>* values, const MatrixView<T>* u,
                  const MatrixView<T>* vh) {
  // For a wide matrix, its adjoint is decomposed, and u and v are exchanged.
  const bool wide = a.rows < a.columns;
  const std::int64_t rows = std::max(a.rows, a.columns), columns = std::min(a.rows, a.columns);
  const auto size = [](std::int64_t m, std::int64_t n) { return static_cast<std::size_t>(m * n); };
  Scratch<T> memory(size(rows, columns));
  const MatrixView<T> tall = ColumnMajor(memory.data(), rows, columns);
  if (wide) {
    CopyAdjoint(tall, a);
  } else {
    CopyMatrix(tall, a);
  }
  const MatrixView<T> none = {nullptr, 0, 0, 0, 0};
  if (u == nullptr) return FactorSvd(tall, values, none, none);
  // One of u and v is computed in place, the other one as its adjoint.
  const MatrixView<T> adjoint = *vh;
  Scratch<T> adjoint_memory(size(adjoint.rows, adjoint.columns));
  const MatrixView<T> found = ColumnMajor(adjoint_memory.data(), adjoint.columns, adjoint.rows);
  if (!FactorSvd(tall, values, wide ? found : *u, wide ? *u : found)) return false;
  CopyAdjoint(adjoint, Const(found));
  return true;
}

// A, full_matrices, compute_uv, driver. The driver is ignored: there is only one algorithm.
void Svd(StableIValue* stack) {
  const char* name = "linalg.svd";
  const TensorPtr a = TakeTensor(stack[0]);
  const bool full = TakeBool(stack[1]), vectors = TakeBool(stack[2]);
  std::optional<TakenText> driver;
  if (const std::optional<StableIValue> text = TakeOptional(stack[3])) driver.emplace(*text);
  RequireMatrices(name, *a);
  const std::int64_t rows = a->size(a->rank() - 2), columns = a->size(a->rank() - 1);
  const std::int64_t count = std::min(rows, columns);
  TensorPtr u, vh, values = Empty(RealDType(a->dtype()), Leading(*a, 2, {count}));
  const TensorPtr info = Empty(ScalarType::kInt32, Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    const auto result = [&](std::int64_t height, std::int64_t width) {
      if (!vectors) return Empty(a->dtype(), {0});
      return EmptyColumnMajor(a->dtype(), Leading(*a, 2, {height, width}));
    };
    u = result(rows, full ? rows : count);
    vh = result(full ? columns : count, columns);
    const Matrices<const T> from(*a);
    std::optional<Matrices<T>> lefts, rights;
    if (vectors) {
      lefts.emplace(*u);
      rights.emplace(*vh);
    }
    ForEachMatrix(from.count(), 20 * rows * columns * count, [&](std::int64_t i) {
      MatrixView<T> left, right;
      if (vectors) {
        left = (*lefts)[i];
        right = (*rights)[i];
      }
      const bool done = DecomposeSvd(from[i], values->data<Real<T>>() + i * count,
                                     vectors ? &left : nullptr, vectors ? &right : nullptr);
      info->data<std::int32_t>()[i] = done ? 0 : 1;
    });
  });
  CheckInfo(name, *info);
  stack[0] = Give(std::move(u));
  stack[1] = Give(std::move(values));
  stack[2] = Give(std::move(vh));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__linalg_svd, "aten::_linalg_svd", "", aoti::slim::Svd)
