#include "runtime/core/layout.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/tests/check.h"

namespace aoti::internal {
namespace {

using Ints = std::vector<std::int64_t>;

TEST(CountsElements) {
  CHECK_TRUE(CheckedNumel(Ints{}, 4) == 1);
  CHECK_TRUE(CheckedNumel(Ints{2, 3}, 4) == 6);
  CHECK_TRUE(CheckedNumel(Ints{2, -3}, 4) == std::nullopt);
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  CHECK_TRUE(CheckedNumel(Ints{max, 2}, 1) == std::nullopt);
  CHECK_TRUE(CheckedNumel(Ints{max, 2, 0}, 1) == 0);
  CHECK_TRUE(CheckedNumel(Ints{max}, 1) == max);
  CHECK_TRUE(CheckedNumel(Ints{max}, 2) == std::nullopt);
}

TEST(ComparesLayouts) {
  const Ints row_major = {3, 1};
  const Ints column_major = {1, 2};
  CHECK_TRUE(SameLayout(Ints{2, 3}, row_major.data(), row_major.data()));
  CHECK_TRUE(!SameLayout(Ints{2, 3}, row_major.data(), column_major.data()));
  CHECK_TRUE(SameLayout(Ints{1, 1}, row_major.data(), column_major.data()));
  CHECK_TRUE(SameLayout(Ints{2, 0}, row_major.data(), column_major.data()));
}

TEST(MeasuresStorage) {
  CHECK_EQ(StorageElements(Ints{}, nullptr), 1);
  CHECK_EQ(StorageElements(Ints{2, 3}, Ints{3, 1}.data()), 6);
  CHECK_EQ(StorageElements(Ints{2, 3}, Ints{10, 2}.data()), 15);
  CHECK_EQ(StorageElements(Ints{2, 0}, Ints{10, 2}.data()), 0);
}

template <typename T>
void CheckTranspose() {
  const std::vector<T> from = {T(1), T(2), T(3), T(4), T(5), T(6)};
  std::vector<T> to(6);
  CopyStrided(Ints{3, 2}, sizeof(T), from.data(), Ints{1, 3}.data(), to.data(), Ints{2, 1}.data());
  CHECK_TRUE(to == std::vector<T>({T(1), T(4), T(2), T(5), T(3), T(6)}));
}

TEST(CopiesBetweenLayouts) {
  CheckTranspose<std::uint8_t>();
  CheckTranspose<std::int16_t>();
  CheckTranspose<float>();
  CheckTranspose<std::int64_t>();

  const float number = 7;
  float copy = 0;
  CopyStrided(Ints{}, 4, &number, nullptr, &copy, nullptr);
  CHECK_EQ(copy, 7.0F);

  // A negative stride, like NumPy's a[::-1].
  const std::vector<std::int16_t> three = {1, 2, 3};
  std::vector<std::int16_t> reversed(3);
  CopyStrided(Ints{3}, 2, three.data() + 2, Ints{-1}.data(), reversed.data(), Ints{1}.data());
  CHECK_TRUE(reversed == std::vector<std::int16_t>({3, 2, 1}));
}

}  // namespace
}  // namespace aoti::internal

int main() { return aoti::testing::RunAllTests(); }
