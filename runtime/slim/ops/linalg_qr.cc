// QR factorisation.

#include <optional>
#include <string_view>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/linalg/qr.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// A, mode
void Qr(StableIValue* stack) {
  const char* name = "linalg.qr";
  const TensorPtr a = TakeTensor(stack[0]);
  const TakenText mode(stack[1]);
  const bool complete = mode.view() == "complete", only_r = mode.view() == "r";
  Require(complete || only_r || mode.view() == "reduced", name, ": mode is \"", mode.view(),
          "\", must be \"reduced\", \"complete\" or \"r\"");
  RequireMatrices(name, *a);
  const std::int64_t rows = a->size(a->rank() - 2), columns = a->size(a->rank() - 1);
  const std::int64_t count = std::min(rows, columns), width = complete ? rows : count;
  TensorPtr q, r;
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    q = only_r ? Empty(a->dtype(), {0})
               : EmptyColumnMajor(a->dtype(), Leading(*a, 2, {rows, width}));
    r = EmptyColumnMajor(a->dtype(), Leading(*a, 2, {width, columns}));
    const TensorPtr copy = ColumnMajorCopy(*a);
    const Matrices<T> from(*copy), triangles(*r);
    std::optional<Matrices<T>> factors;
    if (!only_r) factors.emplace(*q);
    ForEachMatrix(from.count(), 4 * rows * width * columns, [&](std::int64_t i) {
      Scratch<T> taus(static_cast<std::size_t>(count));
      FactorQr(from[i], taus.data());
      const MatrixView<T> triangle = triangles[i];
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t k = 0; k < width; ++k) triangle(k, j) = k <= j ? from[i](k, j) : T(0);
      }
      if (only_r) return;
      MakeIdentity((*factors)[i]);
      MultiplyByQ(Const(from[i]), taus.data(), count, (*factors)[i]);
    });
  });
  stack[0] = Give(std::move(q));
  stack[1] = Give(std::move(r));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_qr, "aten::linalg_qr", "", aoti::slim::Qr)
