// Whether tensors share memory.

#ifndef AOTI_RUNTIME_CORE_OVERLAP_H_
#define AOTI_RUNTIME_CORE_OVERLAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "aoti/tensor_view.h"

namespace aoti::internal {

// The addresses from a tensor's lowest byte to the end of its highest element.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // equal to begin if there are no elements

  bool empty() const { return begin == end; }
  bool Overlaps(const AddressRange& other) const {
    return begin < other.end && other.begin < end && !empty() && !other.empty();
  }
};

// nullopt if the strides reach beyond the address space. Sizes must not be negative; strides may
// be.
std::optional<AddressRange> RangeOf(const TensorView& tensor);

// Whether the two tensors have a byte in common; their elements may also interleave without one.
// Takes time for each element if the ranges overlap and one of the tensors has gaps. Returns true
// if the answer would be too costly, which requires two tensors with elements that share memory
// among themselves.
bool ShareMemory(const TensorView& a, const TensorView& b);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_OVERLAP_H_
