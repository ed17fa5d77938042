#include "runtime/slim/ops/linalg_lu.h"

#include <algorithm>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/linalg/lu.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {

LuFactors FactorizeLu(const char* name, const Tensor& a) {
  RequireMatrices(name, a);
  const std::int64_t count = std::min(a.size(a.rank() - 2), a.size(a.rank() - 1));
  LuFactors f = {.lu = nullptr,
                 .pivots = Empty(ScalarType::kInt32, Leading(a, 2, {count})),
                 .info = Empty(ScalarType::kInt32, Leading(a, 2))};
  DispatchLinalg(name, a.dtype(), [&]<typename T>() {
    f.lu = ColumnMajorCopy(a);
    const Matrices<T> matrices(*f.lu);
    ForEachMatrix(matrices.count(), matrices.rows() * matrices.columns() * count,
                  [&](std::int64_t i) {
                    f.info->data<std::int32_t>()[i] =
                        FactorLu(matrices[i], f.pivots->data<std::int32_t>() + i * count);
                  });
  });
  return f;
}

TensorPtr CheckedPivots(const char* name, const Tensor& lu, const Tensor& pivots) {
  RequireMatrices(name, lu);
  const std::int64_t rows = lu.size(lu.rank() - 2);
  const Shape expected = Leading(lu, 2, {std::min(rows, lu.size(lu.rank() - 1))});
  Require(pivots.dtype() == ScalarType::kInt32, name, ": the pivots are ", NameOf(pivots.dtype()),
          ", must be int32");
  Require(std::equal(pivots.sizes().begin(), pivots.sizes().end(), Ints(expected).begin(),
                     Ints(expected).end()),
          name, ": the sizes of the pivots do not match those of LU");
  TensorPtr dense = Contiguous(pivots);
  for (std::int64_t i = 0; i < dense->numel(); ++i) {
    const std::int32_t pivot = dense->data<std::int32_t>()[i];
    Require(pivot >= 1 && pivot <= rows, name, ": a pivot is ", pivot, ", must be in 1..", rows);
  }
  return dense;
}

namespace {

// A, pivot, check_errors
void LuFactorEx(StableIValue* stack) {
  const char* name = "linalg.lu_factor_ex";
  const TensorPtr a = TakeTensor(stack[0]);
  Require(TakeBool(stack[1]), name, ": pivot is false, must be true");
  const bool check = TakeBool(stack[2]);
  LuFactors f = FactorizeLu(name, *a);
  if (check) CheckInfo(name, *f.info);
  stack[0] = Give(std::move(f.lu));
  stack[1] = Give(std::move(f.pivots));
  stack[2] = Give(std::move(f.info));
}

// Copies l and u out of `lu`.
template <typename T>
void Unpack(const MatrixView<const T>& lu, const MatrixView<T>& l, const MatrixView<T>& u) {
  MakeIdentity(l);
  FillMatrix(u, T(0));
  for (std::int64_t j = 0; j < lu.columns; ++j) {
    for (std::int64_t i = 0; i < lu.rows; ++i) (i > j ? l : u)(i, j) = lu(i, j);
  }
}

struct Unpacked {
  TensorPtr p, l, u;
};

// Tensors that are not requested are empty, as in PyTorch.
Unpacked UnpackAll(const char* name, const Tensor& lu, const Tensor* pivots, bool data) {
  RequireMatrices(name, lu);
  const std::int64_t rows = lu.size(lu.rank() - 2), columns = lu.size(lu.rank() - 1);
  const std::int64_t count = std::min(rows, columns);
  Unpacked to = {Empty(lu.dtype(), {0}), Empty(lu.dtype(), {0}), Empty(lu.dtype(), {0})};
  DispatchLinalg(name, lu.dtype(), [&]<typename T>() {
    if (data) {
      to.l = Empty(lu.dtype(), Leading(lu, 2, {rows, count}));
      to.u = Empty(lu.dtype(), Leading(lu, 2, {count, columns}));
      const Matrices<const T> from(lu);
      const Matrices<T> lower(*to.l), upper(*to.u);
      for (std::int64_t i = 0; i < from.count(); ++i) Unpack(from[i], lower[i], upper[i]);
    }
    if (pivots != nullptr) {
      to.p = Empty(lu.dtype(), Leading(lu, 2, {rows, rows}));
      const Matrices<T> permutations(*to.p);
      for (std::int64_t i = 0; i < permutations.count(); ++i) {
        MakeIdentity(permutations[i]);
        ExchangeRows(permutations[i], pivots->data<std::int32_t>() + i * count, count,
                     Direction::kBackward);
      }
    }
  });
  return to;
}

// A, pivot
void Lu(StableIValue* stack) {
  const char* name = "linalg.lu";
  const TensorPtr a = TakeTensor(stack[0]);
  Require(TakeBool(stack[1]), name, ": pivot is false, must be true");
  const LuFactors f = FactorizeLu(name, *a);
  Unpacked to = UnpackAll(name, *f.lu, f.pivots.get(), /*data=*/true);
  stack[0] = Give(std::move(to.p));
  stack[1] = Give(std::move(to.l));
  stack[2] = Give(std::move(to.u));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_lu_factor_ex, "aten::linalg_lu_factor_ex", "",
                        aoti::slim::LuFactorEx)
AOTI_SLIM_DISPATCHER_OP(aten_linalg_lu, "aten::linalg_lu", "", aoti::slim::Lu)

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_lu_unpack(AtenTensorHandle LU_data, AtenTensorHandle LU_pivots,
                                        int32_t unpack_data, int32_t unpack_pivots,
                                        AtenTensorHandle* ret0, AtenTensorHandle* ret1,
                                        AtenTensorHandle* ret2) {
  return Guarded([&] {
    const char* name = "lu_unpack";
    aoti::slim::TensorPtr pivots;
    if (unpack_pivots != 0) pivots = aoti::slim::CheckedPivots(name, *LU_data, *LU_pivots);
    aoti::slim::Unpacked to = aoti::slim::UnpackAll(name, *LU_data, pivots.get(), unpack_data != 0);
    *ret0 = to.p.release();
    *ret1 = to.l.release();
    *ret2 = to.u.release();
  });
}

}  // extern "C"
