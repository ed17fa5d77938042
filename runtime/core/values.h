// Finds elements that are outside a range.

#ifndef AOTI_RUNTIME_CORE_VALUES_H_
#define AOTI_RUNTIME_CORE_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "aoti/tensor_view.h"

namespace aoti::internal {

struct Outlier {
  std::int64_t value;
  std::vector<std::int64_t> index;
};

// The first element of an integer tensor that is not in low..high (both included); nullopt if there
// is none, or if the tensor has another type.
std::optional<Outlier> FindOutlier(const TensorView& tensor, std::int64_t low, std::int64_t high);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_VALUES_H_
