// A launcher in the emulator: bool and float64 numbers, bool elements, a grid of two sizes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/tests/check.h"
#include "tests/cuda/masked_scale.h"

namespace tests::cuda {
namespace {

using aoti::ErrorCode;

constexpr std::int32_t kRows = 3;
constexpr std::int32_t kColumns = 40;  // two blocks, the second of them not full

TEST(NumbersAndGridsArriveAsTheyAre) {
  const auto kernel = MaskedScale::Load();
  REQUIRE_OK(kernel);
  std::vector<double> values(std::size_t{kRows} * kColumns);
  // std::vector<bool> has no memory of bools.
  std::array<bool, std::size_t{kRows} * kColumns> mask = {};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i) + 1;
    mask[i] = i % 3 != 0;
  }
  const auto x = aoti::CudaArray<double>::Of(values);
  REQUIRE_OK(x);
  const auto kept = aoti::CudaArray<bool>::Of(mask);
  REQUIRE_OK(kept);
  const auto y = aoti::CudaArray<double>::Uninitialized(values.size());
  REQUIRE_OK(y);
  const double factor = 0.1;  // as a float it would be another number
  for (const bool negate : {false, true}) {
    REQUIRE_OK(
        kernel->Launch({}, x->data(), kept->data(), y->data(), kRows, kColumns, factor, negate));
    const auto result = y->ToHost();
    REQUIRE_OK(result);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double scaled = values[i] * factor;
      CHECK_EQ((*result)[i], mask[i] ? (negate ? -scaled : scaled) : 0.0);
    }
  }
}

TEST(AGridThatNoGpuHasIsAnError) {
  const auto kernel = MaskedScale::Load();
  REQUIRE_OK(kernel);
  const auto launched = kernel->Launch({}, nullptr, nullptr, nullptr, -1, kColumns, 1.0, false);
  CHECK_ERROR(
      launched, ErrorCode::kInvalidArgument,
      "//tests/cuda:masked_scale: grid[1] of these arguments is -1; it must be in 0..65535");
}

}  // namespace
}  // namespace tests::cuda

int main() { return aoti::testing::RunAllTests(); }
