// Sorting by integer keys.
//
// An element and its position in the line are packed into one unsigned integer. The upper half is
// the element, mapped to an integer with PyTorch's order of values; the lower half is its index.
// Any algorithm that sorts these integers is stable, and only two types need code.

#ifndef AOTI_RUNTIME_SLIM_OPS_SORT_KEYS_H_
#define AOTI_RUNTIME_SLIM_OPS_SORT_KEYS_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/slim/tensor/dtype.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

using Packed64 = std::uint64_t;       // 32 bits for each half
using Packed128 = unsigned __int128;  // 64 bits for each half

template <typename Packed>
inline constexpr int kIndexBits = sizeof(Packed) * CHAR_BIT / 2;

template <typename Packed>
std::int64_t IndexOf(Packed item) {
  return static_cast<std::int64_t>(item & ((Packed{1} << kIndexBits<Packed>)-1));
}

// Maps the bits of a dtype to a key. NaN is the greatest value, and -0 equals 0.
class KeyRule {
 public:
  KeyRule(ScalarType dtype, bool descending);

  template <typename Packed, typename Bits>
  Packed Pack(Bits bits, std::int64_t index) const {
    switch (kind_) {
      case Kind::kUnsigned:
        return PackAs<Kind::kUnsigned, Packed>(bits, index);
      case Kind::kSigned:
        return PackAs<Kind::kSigned, Packed>(bits, index);
      default:
        return PackAs<Kind::kFloating, Packed>(bits, index);
    }
  }

  // items[i] = the packed element line[i * stride].
  template <typename Packed, typename Bits>
  void PackLine(const Bits* line, std::int64_t stride, std::int64_t size, Packed* items) const {
    switch (kind_) {
      case Kind::kUnsigned:
        return PackLineAs<Kind::kUnsigned>(line, stride, size, items);
      case Kind::kSigned:
        return PackLineAs<Kind::kSigned>(line, stride, size, items);
      default:
        return PackLineAs<Kind::kFloating>(line, stride, size, items);
    }
  }

  template <typename Bits>
  bool IsNan(Bits bits) const {
    constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
    return kind_ == Kind::kFloating && (bits & kMagnitude) > static_cast<Bits>(infinity_);
  }

 private:
  enum class Kind { kUnsigned, kSigned, kFloating };

  template <Kind kind, typename Packed, typename Bits>
  Packed PackAs(Bits bits, std::int64_t index) const {
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * CHAR_BIT - 1));
    Bits key = bits;
    if constexpr (kind == Kind::kSigned) key = bits ^ kSign;
    if constexpr (kind == Kind::kFloating) {
      const Bits magnitude = bits & static_cast<Bits>(~kSign);
      key = bits < kSign || magnitude == 0 ? magnitude | kSign : static_cast<Bits>(~bits);
      if (magnitude > static_cast<Bits>(infinity_)) key = std::numeric_limits<Bits>::max();
    }
    key ^= static_cast<Bits>(flip_);
    return (static_cast<Packed>(key) << kIndexBits<Packed>) | static_cast<Packed>(index);
  }

  template <Kind kind, typename Packed, typename Bits>
  void PackLineAs(const Bits* line, std::int64_t stride, std::int64_t size, Packed* items) const {
    for (std::int64_t i = 0; i < size; ++i) items[i] = PackAs<kind, Packed>(line[i * stride], i);
  }

  Kind kind_;
  std::uint64_t infinity_ = 0;
  std::uint64_t flip_ = 0;
};

// Sorts; returns the array with the result, `items` or `spare`. key_bits: the number of bits of the
// element.
template <typename Packed>
Packed* SortPacked(Packed* items, Packed* spare, std::int64_t size, int key_bits);

// Moves the `count` smallest items to the front, and the greatest of them to items[count - 1].
template <typename Packed>
void SelectSmallest(Packed* items, std::int64_t size, std::int64_t count);

// Moves the `count` smallest items to the front, sorted.
template <typename Packed>
void SortSmallest(Packed* items, std::int64_t size, std::int64_t count);

// Calls function.template operator()<Bits, Packed>() with the types for lines of this dtype and
// size.
template <typename Function>
void DispatchSortable(ScalarType dtype, std::int64_t size, const Function& function) {
  Require(!IsComplex(dtype), "complex numbers have no order");
  const bool wide = size > std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  DispatchBySize(dtype, [&]<typename Bits>() {
    if constexpr (sizeof(Bits) == 8) {
      function.template operator()<Bits, Packed128>();
    } else if constexpr (sizeof(Bits) < 8) {
      if (wide) {
        function.template operator()<Bits, Packed128>();
      } else {
        function.template operator()<Bits, Packed64>();
      }
    }
  });
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_SORT_KEYS_H_
