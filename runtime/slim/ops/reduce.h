// Reductions of real tensors that generated code has kernels of its own for: programs' own
// operators call these.

#ifndef AOTI_RUNTIME_SLIM_OPS_REDUCE_H_
#define AOTI_RUNTIME_SLIM_OPS_REDUCE_H_

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Sums over some dims (all if none is given): in double, or for integers in int64, which is then
// the result's dtype too.
TensorPtr SumOfReal(const Tensor& self, Ints dims, bool keepdim);

// The largest elements, NaN before all others.
TensorPtr LargestOfReal(const Tensor& self, Ints dims, bool keepdim);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_REDUCE_H_
