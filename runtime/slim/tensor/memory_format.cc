#include "runtime/slim/tensor/memory_format.h"

#include <algorithm>
#include <cstddef>

namespace aoti::slim {

bool LooksChannelsLast(Ints sizes, Ints strides) {
  const std::size_t rank = sizes.size();
  if ((rank != 4 && rank != 5) || strides[1] == 0) return false;
  // From the innermost dim: channels, then the spatial dims from the last to the first, then batch.
  std::int64_t least = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = i == 0 ? 1 : i + 1 == rank ? 0 : rank - i;
    if (sizes[d] == 0 || strides[d] < least) return false;
    // All other dims have size 1, or the tensor is a slice of a row: the strides fit both formats.
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  }
  return true;
}

}  // namespace aoti::slim
