// The places of elements that are not zero.

#ifndef AOTI_RUNTIME_SLIM_OPS_NONZERO_H_
#define AOTI_RUNTIME_SLIM_OPS_NONZERO_H_

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// int64 of sizes (count, rank), in row-major order; each column without gaps, as PyTorch has it.
TensorPtr NonZero(const Tensor& self);

// How many there are.
std::int64_t CountNonZero(const Tensor& self);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_NONZERO_H_
