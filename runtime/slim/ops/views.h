// Views that other operators use.

#ifndef AOTI_RUNTIME_SLIM_OPS_VIEWS_H_
#define AOTI_RUNTIME_SLIM_OPS_VIEWS_H_

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// The same elements with other sizes, one of which may be -1: a view if possible, otherwise a copy.
TensorPtr Reshape(const Tensor& self, Ints given);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_VIEWS_H_
