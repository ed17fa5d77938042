#include "runtime/core/layout.h"

#include <algorithm>
#include <cstring>

namespace aoti::internal {
namespace {

// Copies along the last dimension; each element is moved as `Size` bytes, with any alignment.
template <std::size_t Size>
void CopyRow(std::int64_t count, const char* from, std::int64_t from_stride, char* to,
             std::int64_t to_stride) {
  constexpr auto kSize = static_cast<std::int64_t>(Size);
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride * kSize, from + i * from_stride * kSize, Size);
  }
}

template <std::size_t Size>
void CopyDims(std::span<const std::int64_t> sizes, const char* from,
              const std::int64_t* from_strides, char* to, const std::int64_t* to_strides) {
  if (sizes.empty()) {
    std::memcpy(to, from, Size);
    return;
  }
  if (sizes.size() == 1) {
    if (from_strides[0] == 1 && to_strides[0] == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(sizes[0]) * Size);
    } else {
      CopyRow<Size>(sizes[0], from, from_strides[0], to, to_strides[0]);
    }
    return;
  }
  constexpr auto kSize = static_cast<std::int64_t>(Size);
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    CopyDims<Size>(sizes.subspan(1), from + i * from_strides[0] * kSize, from_strides + 1,
                   to + i * to_strides[0] * kSize, to_strides + 1);
  }
}

}  // namespace

std::optional<std::int64_t> CheckedNumel(std::span<const std::int64_t> sizes,
                                         std::size_t element_size) {
  if (std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size < 0; })) {
    return std::nullopt;
  }
  // One size of 0 makes the tensor empty, even if the product of the others overflows.
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  std::int64_t numel = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(numel, size, &numel)) return std::nullopt;
  }
  std::int64_t bytes;
  if (__builtin_mul_overflow(numel, static_cast<std::int64_t>(element_size), &bytes)) {
    return std::nullopt;
  }
  return numel;
}

void ContiguousStrides(std::span<const std::int64_t> sizes, std::int64_t* strides) {
  std::int64_t stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
}

bool SameLayout(std::span<const std::int64_t> sizes, const std::int64_t* a, const std::int64_t* b) {
  bool same = true;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1 && a[d] != b[d]) same = false;
  }
  return same;
}

std::int64_t StorageElements(std::span<const std::int64_t> sizes, const std::int64_t* strides) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

void CopyStrided(std::span<const std::int64_t> sizes, std::size_t element_size, const void* from,
                 const std::int64_t* from_strides, void* to, const std::int64_t* to_strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  switch (element_size) {
    case 1:
      return CopyDims<1>(sizes, source, from_strides, target, to_strides);
    case 2:
      return CopyDims<2>(sizes, source, from_strides, target, to_strides);
    case 4:
      return CopyDims<4>(sizes, source, from_strides, target, to_strides);
    case 8:
      return CopyDims<8>(sizes, source, from_strides, target, to_strides);
    default:
      break;
  }
}

}  // namespace aoti::internal
