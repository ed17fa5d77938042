#include "runtime/slim/ops/sort_keys.h"

#include <algorithm>
#include <utility>

namespace aoti::slim {
namespace {

constexpr std::int64_t kRun = 4;           // sorted by a sorting network
constexpr std::int64_t kFew = 12;          // insertion sort up to this size
constexpr std::int64_t kRadixLeast = 800;  // radix sort from this size on
constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

template <typename Packed>
void InsertionSort(Packed* items, std::int64_t size) {
  for (std::int64_t i = 1; i < size; ++i) {
    const Packed moving = items[i];
    std::int64_t j = i;
    for (; j > 0 && moving < items[j - 1]; --j) items[j] = items[j - 1];
    items[j] = moving;
  }
}

// Nothing in MergeSort branches on a comparison of items: half of the branches would be
// mispredicted.

template <typename Packed>
void Order(Packed& a, Packed& b) {
  const Packed low = b < a ? b : a;
  b = b < a ? a : b;
  a = low;
}

template <typename Packed>
void SortRun(Packed* items) {
  Order(items[0], items[2]);
  Order(items[1], items[3]);
  Order(items[0], items[1]);
  Order(items[2], items[3]);
  Order(items[1], items[2]);
}

template <typename Packed>
void SortShortRun(Packed* items, std::int64_t size) {  // size < kRun
  if (size > 1) Order(items[0], items[1]);
  if (size > 2) {
    Order(items[1], items[2]);
    Order(items[0], items[1]);
  }
}

// Merges two runs of `run` items each, from both ends at once: there are two chains of dependent
// comparisons instead of one, and neither can read beyond its run.
template <typename Packed>
void MergeEqual(const Packed* items, std::int64_t run, Packed* out) {
  const Packed *left = items, *right = items + run;
  const Packed *left_last = right - 1, *right_last = right + run - 1;
  Packed* out_last = out + 2 * run - 1;
  for (std::int64_t i = 0; i < run; ++i) {
    const bool take_right = *right < *left;
    *out++ = take_right ? *right : *left;
    right += take_right;
    left += !take_right;
    const bool take_left = *right_last < *left_last;
    *out_last-- = take_left ? *left_last : *right_last;
    left_last -= take_left;
    right_last -= !take_left;
  }
}

// Merges left..right and right..end, neither of which is empty.
template <typename Packed>
void Merge(const Packed* left, const Packed* right, const Packed* end, Packed* out) {
  const Packed* const middle = right;
  while (left != middle && right != end) {
    const bool take_right = *right < *left;
    *out++ = take_right ? *right : *left;
    right += take_right;
    left += !take_right;
  }
  while (left != middle) *out++ = *left++;
  while (right != end) *out++ = *right++;
}

template <typename Packed>
Packed* MergeSort(Packed* items, Packed* spare, std::int64_t size) {
  std::int64_t sorted = 0;
  for (; sorted + kRun <= size; sorted += kRun) SortRun(items + sorted);
  SortShortRun(items + sorted, size - sorted);
  for (std::int64_t run = kRun; run < size; run *= 2) {
    for (std::int64_t i = 0; i < size; i += 2 * run) {
      if (i + 2 * run <= size) {
        MergeEqual(items + i, run, spare + i);
      } else if (i + run < size) {
        Merge(items + i, items + i + run, items + size, spare + i);
      } else {
        for (std::int64_t j = i; j < size; ++j) spare[j] = items[j];
      }
    }
    std::swap(items, spare);
  }
  return items;
}

// Sorts by the digits of the key, from the least to the most significant one; the items are already
// sorted by index.
template <typename Packed>
Packed* RadixSort(Packed* items, Packed* spare, std::int64_t size, int key_bits) {
  constexpr int kMost = kIndexBits<Packed> / kDigitBits;
  const int digits = key_bits / kDigitBits;
  std::int64_t starts[kMost][kDigits] = {};
  for (std::int64_t i = 0; i < size; ++i) {
    auto key = static_cast<std::uint64_t>(items[i] >> kIndexBits<Packed>);
    for (int digit = 0; digit < digits; ++digit, key >>= kDigitBits) {
      ++starts[digit][key & (kDigits - 1)];
    }
  }
  for (int digit = 0; digit < digits; ++digit) {
    const int shift = kIndexBits<Packed> + digit * kDigitBits;
    std::int64_t* const start = starts[digit];
    const auto value_of = [&](Packed item) {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(item >> shift) & (kDigits - 1));
    };
    if (start[value_of(items[0])] == size) continue;  // all items have the same digit
    std::int64_t next = 0;
    for (int value = 0; value < kDigits; ++value) next += std::exchange(start[value], next);
    for (std::int64_t i = 0; i < size; ++i) spare[start[value_of(items[i])]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

}  // namespace

KeyRule::KeyRule(ScalarType dtype, bool descending) {
  if (descending) flip_ = ~std::uint64_t{0};
  switch (dtype) {
    case ScalarType::kFloat16:
      infinity_ = 0x7c00;
      break;
    case ScalarType::kBFloat16:
      infinity_ = 0x7f80;
      break;
    case ScalarType::kFloat32:
      infinity_ = 0x7f800000;
      break;
    case ScalarType::kFloat64:
      infinity_ = 0x7ff0000000000000;
      break;
    default:
      break;
  }
  const bool is_signed = dtype == ScalarType::kInt8 || dtype == ScalarType::kInt16 ||
                         dtype == ScalarType::kInt32 || dtype == ScalarType::kInt64;
  kind_ = infinity_ != 0 ? Kind::kFloating : is_signed ? Kind::kSigned : Kind::kUnsigned;
}

template <typename Packed>
Packed* SortPacked(Packed* items, Packed* spare, std::int64_t size, int key_bits) {
  if (size <= kFew) {
    InsertionSort(items, size);
    return items;
  }
  if (size < kRadixLeast) return MergeSort(items, spare, size);
  return RadixSort(items, spare, size, key_bits);
}

template <typename Packed>
void SelectSmallest(Packed* items, std::int64_t size, std::int64_t count) {
  if (count > 0) std::nth_element(items, items + (count - 1), items + size);
}

template <typename Packed>
void SortSmallest(Packed* items, std::int64_t size, std::int64_t count) {
  if (size <= kFew) return InsertionSort(items, size);
  SelectSmallest(items, size, count);
  if (count > 1) std::sort(items, items + (count - 1));
}

#define AOTI_SLIM_SORT(packed)                                               \
  template packed* SortPacked<packed>(packed*, packed*, std::int64_t, int);  \
  template void SelectSmallest<packed>(packed*, std::int64_t, std::int64_t); \
  template void SortSmallest<packed>(packed*, std::int64_t, std::int64_t);
AOTI_SLIM_SORT(Packed64)
AOTI_SLIM_SORT(Packed128)
#undef AOTI_SLIM_SORT

}  // namespace aoti::slim
