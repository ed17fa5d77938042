// Products of complex matrices, which generated code calls by name.

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/linalg.h"

namespace aoti::slim {
namespace {

// Multiplies matrices (rank 2), or batches with the same number of matrices (rank 3).
void Multiply(const char* name, std::int64_t rank, StableIValue* stack) {
  const TensorPtr a = TakeTensor(stack[0]), b = TakeTensor(stack[1]);
  for (const Tensor* t : {a.get(), b.get()}) {
    Require(t->rank() == rank, name, ": a tensor of rank ", t->rank(), " was given, ", rank,
            " is needed");
  }
  Require(a->dtype() == b->dtype(), name, ": dtypes differ: ", NameOf(a->dtype()), " and ",
          NameOf(b->dtype()));
  Require(rank == 2 || a->size(0) == b->size(0), name, ": batches of ", a->size(0), " and ",
          b->size(0));
  Require(a->size(rank - 1) == b->size(rank - 2), name, ": matrices of sizes [", a->size(rank - 2),
          ", ", a->size(rank - 1), "] and [", b->size(rank - 2), ", ", b->size(rank - 1),
          "] cannot be multiplied");
  TensorPtr result = Empty(a->dtype(), Leading(*a, 1, {b->size(rank - 1)}));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    const Matrices<const T> lefts(*a), rights(*b);
    const Matrices<T> products(*result);
    ForEachMatrix(products.count(), lefts.rows() * lefts.columns() * rights.columns(),
                  [&](std::int64_t i) {
                    FillMatrix(products[i], T(0));
                    AddProduct(products[i], 1, lefts[i], rights[i]);
                  });
  });
  stack[0] = Give(std::move(result));
}

void Mm(StableIValue* stack) { Multiply("mm", 2, stack); }
void Bmm(StableIValue* stack) { Multiply("bmm", 3, stack); }

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_mm, "aten::mm", "", aoti::slim::Mm)
AOTI_SLIM_DISPATCHER_OP(aten_bmm, "aten::bmm", "", aoti::slim::Bmm)
