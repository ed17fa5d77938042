// Products of Householder reflectors: QR factorisation that keeps them, and what multiplies by
// them.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/linalg/qr.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

struct Reflectors {
  TensorPtr kept, taus;
};

Reflectors Geqrf(const Tensor& a) {
  const char* name = "geqrf";
  RequireMatrices(name, a);
  const std::int64_t rows = a.size(a.rank() - 2), columns = a.size(a.rank() - 1);
  const std::int64_t count = std::min(rows, columns);
  Reflectors f;
  DispatchLinalg(name, a.dtype(), [&]<typename T>() {
    f.kept = ColumnMajorCopy(a);
    f.taus = Empty(a.dtype(), Leading(a, 2, {count}));
    const Matrices<T> matrices(*f.kept);
    ForEachMatrix(matrices.count(), 2 * rows * columns * count,
                  [&](std::int64_t i) { FactorQr(matrices[i], f.taus->data<T>() + i * count); });
  });
  return f;
}

// Throws OpError unless there is a row of taus for each matrix. Returns the number of taus.
std::int64_t RequireTaus(const char* name, const Tensor& a, const Tensor& taus) {
  RequireMatrices(name, a);
  Require(taus.dtype() == a.dtype(), name, ": dtypes differ: ", NameOf(a.dtype()), " and ",
          NameOf(taus.dtype()), " for tau");
  Require(taus.rank() == a.rank() - 1, name, ": tau has rank ", taus.rank(), ", must have rank ",
          a.rank() - 1);
  const std::int64_t count = taus.size(taus.rank() - 1);
  const Shape expected = Leading(a, 2, {count});
  Require(std::equal(taus.sizes().begin(), taus.sizes().end(), Ints(expected).begin()), name,
          ": the batch sizes of tau do not match those of the matrices");
  return count;
}

// input, tau
void HouseholderProduct(StableIValue* stack) {
  const char* name = "linalg.householder_product";
  const TensorPtr a = TakeTensor(stack[0]), given = TakeTensor(stack[1]);
  const std::int64_t count = RequireTaus(name, *a, *given);
  const std::int64_t rows = a->size(a->rank() - 2), columns = a->size(a->rank() - 1);
  Require(rows >= columns, name, ": the matrices are of ", rows, " by ", columns,
          ", must not have more columns than rows");
  Require(columns >= count, name, ": ", count, " numbers are given for tau, must be at most ",
          columns, ", the number of columns");
  TensorPtr result;
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    result = EmptyColumnMajor(a->dtype(), a->sizes());
    const TensorPtr taus = Contiguous(*given);
    const Matrices<const T> reflectors(*a);
    const Matrices<T> products(*result);
    ForEachMatrix(products.count(), 4 * rows * columns * count, [&](std::int64_t i) {
      MakeIdentity(products[i]);
      MultiplyByQ(reflectors[i], taus->data<T>() + i * count, count, products[i]);
    });
  });
  stack[0] = Give(std::move(result));
}

TensorPtr Ormqr(const Tensor& a, const Tensor& given, const Tensor& other, bool left,
                Factor factor) {
  const char* name = "ormqr";
  const std::int64_t count = RequireTaus(name, a, given);
  Require(other.dtype() == a.dtype(), name, ": dtypes differ: ", NameOf(a.dtype()), " and ",
          NameOf(other.dtype()), " for other");
  const Shape batch = Leading(a, 2);
  Require(other.rank() == a.rank() &&
              std::equal(Ints(batch).begin(), Ints(batch).end(), other.sizes().begin()),
          name, ": other must have the same number of dims and the same batch sizes as the input");
  const std::int64_t rows = a.size(a.rank() - 2), columns = a.size(a.rank() - 1);
  const std::int64_t size = other.size(other.rank() - (left ? 2 : 1));
  Require(size == rows, name, ": other has ", size, left ? " rows" : " columns",
          ", must have as many as the input has rows: ", rows);
  Require(count == std::min(rows, columns), name, ": ", count,
          " numbers are given for tau, must be ", std::min(rows, columns), " for matrices of ",
          rows, " by ", columns);
  TensorPtr result;
  DispatchLinalg(name, a.dtype(), [&]<typename T>() {
    result = ColumnMajorCopy(other);
    const TensorPtr taus = Contiguous(given);
    const Matrices<const T> reflectors(a);
    const Matrices<T> products(*result);
    const std::int64_t work = 4 * products.rows() * products.columns() * count;
    ForEachMatrix(products.count(), work, [&](std::int64_t i) {
      const T* tau = taus->data<T>() + i * count;
      if (left) {
        MultiplyByQ(reflectors[i], tau, count, products[i], factor);
      } else {
        MultiplyByQFromRight(reflectors[i], tau, count, products[i], factor);
      }
    });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_linalg_householder_product, "aten::linalg_householder_product", "",
                        aoti::slim::HouseholderProduct)

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu_geqrf(AtenTensorHandle self, AtenTensorHandle* ret0,
                                    AtenTensorHandle* ret1) {
  return Guarded([&] {
    Reflectors f = Geqrf(*self);
    *ret0 = f.kept.release();
    *ret1 = f.taus.release();
  });
}

AOTITorchError aoti_torch_cpu_ormqr(AtenTensorHandle self, AtenTensorHandle input2,
                                    AtenTensorHandle input3, int32_t left, int32_t transpose,
                                    AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Factor factor = transpose != 0 ? Factor::kAdjoint : Factor::kOwn;
    *ret0 = Ormqr(*self, *input2, *input3, left != 0, factor).release();
  });
}

}  // extern "C"
