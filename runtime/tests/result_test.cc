#include "aoti/result.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/tests/check.h"

namespace aoti {
namespace {

using Pointer = std::unique_ptr<int>;

Result<Pointer> Make(bool ok) {
  if (!ok) return Error(ErrorCode::kWrongRank, "no");
  return std::make_unique<int>(7);
}

TEST(HoldsAValue) {
  auto result = Make(true);
  CHECK_TRUE(result.ok());
  CHECK_TRUE(static_cast<bool>(result));
  CHECK_EQ(**result, 7);
  CHECK_EQ(*result->get(), 7);
  const Pointer taken = *std::move(result);
  CHECK_EQ(*taken, 7);
  CHECK_TRUE(result.ok());  // moved from, but it still holds a value
}

TEST(HoldsAnError) {
  auto result = Make(false);
  CHECK_TRUE(!result.ok());
  CHECK_EQ(result.error().message(), "no");
  CHECK_TRUE(result.error().code() == ErrorCode::kWrongRank);
  const Error moved = std::move(result).error();
  CHECK_EQ(moved.message(), "no");
}

TEST(IsMoveOnlyIfItsValueIs) {
  static_assert(!std::is_copy_constructible_v<Result<Pointer>>);
  static_assert(std::is_copy_constructible_v<Result<std::string>>);
  static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);
  const Result<std::string> a = std::string("x");
  const Result<std::string> b = a;  // NOLINT
  CHECK_EQ(*b, "x");
}

TEST(CodesHaveNames) {
  CHECK_EQ(to_string(ErrorCode::kWrongRank), "WrongRank");
  CHECK_EQ(to_string(ErrorCode::kWeightsMismatch), "WeightsMismatch");
  CHECK_EQ(to_string(static_cast<ErrorCode>(0)), "Unknown");
  CHECK_EQ(static_cast<int>(ErrorCode::kVersionMismatch), 203);
}

}  // namespace
}  // namespace aoti

int main() { return aoti::testing::RunAllTests(); }
