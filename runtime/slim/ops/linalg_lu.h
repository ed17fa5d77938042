// LU factors of batches of matrices.

#ifndef AOTI_RUNTIME_SLIM_OPS_LINALG_LU_H_
#define AOTI_RUNTIME_SLIM_OPS_LINALG_LU_H_

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

struct LuFactors {
  TensorPtr lu, pivots, info;
};

// Factorises matrices of any sizes. `name`: the operator, for errors.
LuFactors FactorizeLu(const char* name, const Tensor& a);

// A dense copy of the pivots for `lu`. Throws OpError if they can't belong to it.
TensorPtr CheckedPivots(const char* name, const Tensor& lu, const Tensor& pivots);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_LINALG_LU_H_
