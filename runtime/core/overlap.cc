#include "runtime/core/overlap.h"

#include <algorithm>
#include <vector>

#include "runtime/core/layout.h"

namespace aoti::internal {
namespace {

struct Step {
  std::uintptr_t bytes;
  std::uintptr_t count;
};

// A tensor as a set of addresses, whatever the order of its dimensions.
struct Places {
  std::uintptr_t begin;
  std::uintptr_t element;   // bytes per element
  std::vector<Step> steps;  // of dimensions with more than one element, the largest first

  std::uintptr_t extent() const { return Extent(0); }

  // The number of bytes that the steps from `first` on span.
  std::uintptr_t Extent(std::size_t first) const {
    std::uintptr_t extent = element;
    for (std::size_t s = first; s < steps.size(); ++s) {
      extent += (steps[s].count - 1) * steps[s].bytes;
    }
    return extent;
  }

  bool Dense() const {
    std::uintptr_t bytes = element;
    for (const Step& step : steps) bytes *= step.count;
    return bytes == extent();
  }

  // Whether each step is larger than what the steps after it span: then an address determines its
  // indices.
  bool Nested() const {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].bytes < Extent(s + 1)) return false;
    }
    return true;
  }

  // Whether an element covers the byte at `address`. The places must be nested.
  bool Cover(std::uintptr_t address) const {
    if (address < begin || address - begin >= extent()) return false;
    std::uintptr_t rest = address - begin;
    for (const Step& step : steps) {
      rest -= std::min(rest / step.bytes, step.count - 1) * step.bytes;
    }
    return rest < element;
  }
};

Places PlacesOf(const TensorView& tensor, const AddressRange& range) {
  Places places = {range.begin, SizeOf(tensor.dtype), {}};
  std::vector<std::int64_t> contiguous(tensor.sizes.size());
  ContiguousStrides(tensor.sizes, contiguous.data());
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    if (tensor.sizes[d] < 2) continue;
    const std::int64_t stride = tensor.strides.empty() ? contiguous[d] : tensor.strides[d];
    const auto length = static_cast<std::uintptr_t>(stride < 0 ? -stride : stride);
    places.steps.push_back({length * places.element, static_cast<std::uintptr_t>(tensor.sizes[d])});
  }
  std::ranges::sort(places.steps, std::ranges::greater(), &Step::bytes);
  return places;
}

// Whether an element of `a`, from step `s` on, has a byte that `b` covers.
bool AnyCovered(const Places& a, std::size_t s, std::uintptr_t address, const Places& b) {
  if (s < a.steps.size()) {
    for (std::uintptr_t i = 0; i < a.steps[s].count; ++i) {
      if (AnyCovered(a, s + 1, address + i * a.steps[s].bytes, b)) return true;
    }
    return false;
  }
  // No element of `b` fits between two of these bytes.
  for (std::uintptr_t byte = 0; byte < a.element; byte += b.element) {
    if (b.Cover(address + byte)) return true;
  }
  return b.Cover(address + a.element - 1);
}

}  // namespace

std::optional<AddressRange> RangeOf(const TensorView& tensor) {
  const auto at = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return AddressRange{at, at};
  const auto element = static_cast<std::int64_t>(SizeOf(tensor.dtype));
  std::int64_t lowest = 0;
  std::int64_t highest = element;
  std::int64_t numel = 1;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    numel *= tensor.strides.empty() ? tensor.sizes[d] : 1;
    if (tensor.strides.empty() || tensor.sizes[d] == 1) continue;
    std::int64_t reach;
    if (__builtin_mul_overflow(tensor.sizes[d] - 1, tensor.strides[d], &reach) ||
        __builtin_mul_overflow(reach, element, &reach)) {
      return std::nullopt;
    }
    std::int64_t& end = reach < 0 ? lowest : highest;
    if (__builtin_add_overflow(end, reach, &end)) return std::nullopt;
  }
  if (tensor.strides.empty()) highest = numel * element;
  AddressRange range;
  if (__builtin_add_overflow(at, lowest, &range.begin) ||
      __builtin_add_overflow(at, highest, &range.end)) {
    return std::nullopt;
  }
  return range;
}

bool ShareMemory(const TensorView& a, const TensorView& b) {
  const auto range_a = RangeOf(a);
  const auto range_b = RangeOf(b);
  if (!range_a || !range_b) return true;
  if (!range_a->Overlaps(*range_b)) return false;
  const Places places_a = PlacesOf(a, *range_a);
  const Places places_b = PlacesOf(b, *range_b);
  if (places_a.Dense() && places_b.Dense()) return true;
  if (places_b.Nested()) return AnyCovered(places_a, 0, places_a.begin, places_b);
  if (places_a.Nested()) return AnyCovered(places_b, 0, places_b.begin, places_a);
  return true;
}

}  // namespace aoti::internal
