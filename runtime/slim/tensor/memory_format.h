// Memory formats, as PyTorch guesses them from strides.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_
#define AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_

#include <cstdint>

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Whether PyTorch takes strides of 4 or 5 dims for those of channels last, also where sizes of 1
// leave it open. False for other ranks.
bool LooksChannelsLast(Ints sizes, Ints strides);
inline bool LooksChannelsLast(const Tensor& tensor) {
  return LooksChannelsLast(tensor.sizes(), tensor.strides());
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_MEMORY_FORMAT_H_
