#include "runtime/cuda/grid_size.h"

#include <algorithm>
#include <utility>

#include "runtime/core/text.h"

namespace aoti::cuda {
namespace {

// CUDA's limits of each dimension.
constexpr std::int64_t kMost[] = {0x7fffffff, 0xffff, 0xffff};

template <typename Function>
GridSize Combined(GridSize a, GridSize b, const Function& function) {
  std::int64_t result = 0;
  if (!a.value() || !b.value() || !function(*a.value(), *b.value(), &result)) return {};
  return GridSize(result);
}

// The quotient, rounded down, and the remainder, which has the sign of b.
std::optional<std::pair<std::int64_t, std::int64_t>> Divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  const std::int64_t quotient = a / b;
  const std::int64_t rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) return std::pair(quotient - 1, rest + b);
  return std::pair(quotient, rest);
}

}  // namespace

GridSize operator+(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) { return !__builtin_add_overflow(x, y, z); });
}

GridSize operator-(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) { return !__builtin_sub_overflow(x, y, z); });
}

GridSize operator*(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) { return !__builtin_mul_overflow(x, y, z); });
}

GridSize operator/(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) {
    const auto divided = Divide(x, y);
    if (divided) *z = divided->first;
    return divided.has_value();
  });
}

GridSize operator%(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) {
    const auto divided = Divide(x, y);
    if (divided) *z = divided->second;
    return divided.has_value();
  });
}

GridSize CeilDiv(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) {
    const auto divided = Divide(x, y);
    if (divided) *z = divided->first + (divided->second != 0 ? 1 : 0);
    return divided.has_value();
  });
}

GridSize Min(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) { return *z = std::min(x, y), true; });
}

GridSize Max(GridSize a, GridSize b) {
  return Combined(a, b, [](auto x, auto y, auto* z) { return *z = std::max(x, y), true; });
}

Result<CudaGrid> GridOf(const char* label, std::initializer_list<GridSize> sizes) {
  std::uint32_t found[] = {1, 1, 1};
  std::size_t number = 0;
  for (const GridSize& size : sizes) {
    const auto& value = size.value();
    if (!value || *value < 0 || *value > kMost[number]) {
      return Error(ErrorCode::kInvalidArgument,
                   internal::StrCat(label, ": grid[", number, "] of these arguments is ",
                                    value ? internal::StrCat(*value) : "no 64-bit integer",
                                    "; it must be in 0..", kMost[number]));
    }
    found[number++] = static_cast<std::uint32_t>(*value);
  }
  return CudaGrid{.x = found[0], .y = found[1], .z = found[2]};
}

}  // namespace aoti::cuda
