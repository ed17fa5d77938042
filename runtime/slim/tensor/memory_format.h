// Memory formats, derived from strides as PyTorch does.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_
#define AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_

#include <cstdint>

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Whether PyTorch regards strides of 4 or 5 dims as channels last, including cases in which sizes
// of 1 make the strides ambiguous. False for other ranks.
bool LooksChannelsLast(Ints sizes, Ints strides);
inline bool LooksChannelsLast(const Tensor& tensor) {
  return LooksChannelsLast(tensor.sizes(), tensor.strides());
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_
