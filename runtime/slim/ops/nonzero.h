// The positions of nonzero elements.

#ifndef AOTI_RUNTIME_SLIM_OPS_NONZERO_H_
#define AOTI_RUNTIME_SLIM_OPS_NONZERO_H_

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// An int64 tensor of sizes (count, rank), in row-major order of the positions; the columns are
// contiguous, as in PyTorch.
TensorPtr NonZero(const Tensor& self);

// The number of nonzero elements.
std::int64_t CountNonZero(const Tensor& self);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_NONZERO_H_
