// Sizes of grids: Python's arithmetic, and what is no size.

#include "runtime/cuda/grid_size.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "runtime/tests/check.h"

namespace aoti::cuda {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::string Text(GridSize size) { return size.value() ? std::to_string(*size.value()) : "none"; }

TEST(DivisionRoundsDown) {
  const auto check = [](std::int64_t a, std::int64_t b, const char* quotient, const char* rest,
                        const char* up) {
    CHECK_EQ(Text(GridSize(a) / GridSize(b)), std::string(quotient));
    CHECK_EQ(Text(GridSize(a) % GridSize(b)), std::string(rest));
    CHECK_EQ(Text(CeilDiv(GridSize(a), GridSize(b))), std::string(up));
  };
  check(7, 2, "3", "1", "4");
  check(-7, 2, "-4", "1", "-3");
  check(7, -2, "-4", "-1", "-3");
  check(-7, -2, "3", "-1", "4");
  check(8, 2, "4", "0", "4");
  check(0, 5, "0", "0", "0");
  check(kMax, 1, "9223372036854775807", "0", "9223372036854775807");
  check(5, 0, "none", "none", "none");
  check(kMin, -1, "none", "none", "none");
}

TEST(OverflowIsNoSize) {
  CHECK_EQ(Text(GridSize(2) + GridSize(3)), std::string("5"));
  CHECK_EQ(Text(GridSize(2) - GridSize(3)), std::string("-1"));
  CHECK_EQ(Text(GridSize(2) * GridSize(3)), std::string("6"));
  CHECK_EQ(Text(GridSize(kMax) + GridSize(1)), std::string("none"));
  CHECK_EQ(Text(GridSize(kMin) - GridSize(1)), std::string("none"));
  CHECK_EQ(Text(GridSize(kMax) * GridSize(2)), std::string("none"));
  CHECK_EQ(Text(GridSize(std::numeric_limits<std::uint64_t>::max())), std::string("none"));
}

TEST(WhatIsNoSizeStaysSo) {
  const GridSize none;
  CHECK_EQ(Text(Min(GridSize(2), GridSize(3))), std::string("2"));
  CHECK_EQ(Text(Max(GridSize(2), GridSize(3))), std::string("3"));
  CHECK_EQ(Text(Min(GridSize(2), none)), std::string("none"));
  CHECK_EQ(Text(Max(none, GridSize(2))), std::string("none"));
  CHECK_EQ(Text(none * GridSize(0)), std::string("none"));
}

TEST(AGridHasUpToThreeSizes) {
  const auto grid = GridOf("k", {GridSize(0x7fffffff), GridSize(0xffff)});
  REQUIRE_OK(grid);
  CHECK_EQ(grid->x, 0x7fffffffU);
  CHECK_EQ(grid->y, 0xffffU);
  CHECK_EQ(grid->z, 1U);
  const auto whole = GridOf("k", {GridSize(0), GridSize(2), GridSize(3)});
  REQUIRE_OK(whole);
  CHECK_EQ(whole->x, 0U);
  CHECK_EQ(whole->z, 3U);
}

TEST(WrongGridsAreErrors) {
  const GridSize one(1);
  CHECK_ERROR(GridOf("//pkg:k", {GridSize(-1)}), ErrorCode::kInvalidArgument,
              "//pkg:k: grid[0] of these arguments is -1; it must be in 0..2147483647");
  CHECK_ERROR(GridOf("//pkg:k", {GridSize(std::int64_t{1} << 31)}), ErrorCode::kInvalidArgument,
              "//pkg:k: grid[0] of these arguments is 2147483648; it must be in 0..2147483647");
  CHECK_ERROR(GridOf("//pkg:k", {one, GridSize(65536)}), ErrorCode::kInvalidArgument,
              "//pkg:k: grid[1] of these arguments is 65536; it must be in 0..65535");
  CHECK_ERROR(GridOf("//pkg:k", {one, one, one / GridSize(0)}), ErrorCode::kInvalidArgument,
              "//pkg:k: grid[2] of these arguments is no 64-bit integer; it must be in 0..65535");
}

}  // namespace
}  // namespace aoti::cuda

int main() { return aoti::testing::RunAllTests(); }
