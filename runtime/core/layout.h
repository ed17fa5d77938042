// Sizes, strides, and copying between layouts.

#ifndef AOTI_RUNTIME_CORE_LAYOUT_H_
#define AOTI_RUNTIME_CORE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace aoti::internal {

// The product of `sizes`, 1 if there are none; nullopt if a size is negative, or if that many
// elements of `element_size` bytes do not fit.
std::optional<std::int64_t> CheckedNumel(std::span<const std::int64_t> sizes,
                                         std::size_t element_size);

// Writes the strides of a contiguous tensor, as torch does (a size of 0 counts as 1).
void ContiguousStrides(std::span<const std::int64_t> sizes, std::int64_t* strides);

// Whether two layouts of a tensor put each element at the same place. The strides of dimensions
// with one element don't matter, nor do any strides of a tensor without elements.
bool SameLayout(std::span<const std::int64_t> sizes, const std::int64_t* a, const std::int64_t* b);

// The distance from the first to the end of the last element of a tensor with non-negative strides,
// in elements.
std::int64_t StorageElements(std::span<const std::int64_t> sizes, const std::int64_t* strides);

// Copies a tensor of `element_size` bytes per element into another layout. Strides in elements.
void CopyStrided(std::span<const std::int64_t> sizes, std::size_t element_size, const void* from,
                 const std::int64_t* from_strides, void* to, const std::int64_t* to_strides);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_LAYOUT_H_
