// Whether tensors share memory.

#ifndef AOTI_RUNTIME_CORE_OVERLAP_H_
#define AOTI_RUNTIME_CORE_OVERLAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "aoti/tensor_view.h"

namespace aoti::internal {

// The bytes from a tensor's lowest element to behind its highest, as addresses.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // begin, where there are no elements

  bool empty() const { return begin == end; }
  bool Overlaps(const AddressRange& other) const {
    return begin < other.end && other.begin < end && !empty() && !other.empty();
  }
};

// Nothing where strides reach further than addresses do. Sizes must not be negative; strides may.
std::optional<AddressRange> RangeOf(const TensorView& tensor);

// Whether the two have a byte in common, rather than lie between each other's elements. Takes time
// for each element where the ranges overlap and one of the tensors has holes. True where that would
// be too hard to tell, which takes two tensors whose own elements share memory.
bool ShareMemory(const TensorView& a, const TensorView& b);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_OVERLAP_H_
