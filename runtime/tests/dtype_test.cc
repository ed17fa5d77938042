#include "aoti/dtype.h"

#include <cmath>
#include <limits>

#include "runtime/tests/check.h"

namespace aoti {
namespace {

TEST(HasTorchsNamesNumbersAndSizes) {
  const struct {
    DType dtype;
    int number;
    const char* name;
    std::size_t size;
  } dtypes[] = {
      {DType::kUInt8, 0, "uint8", 1},         {DType::kInt8, 1, "int8", 1},
      {DType::kInt16, 2, "int16", 2},         {DType::kInt32, 3, "int32", 4},
      {DType::kInt64, 4, "int64", 8},         {DType::kFloat16, 5, "float16", 2},
      {DType::kFloat32, 6, "float32", 4},     {DType::kFloat64, 7, "float64", 8},
      {DType::kComplex64, 9, "complex64", 8}, {DType::kBool, 11, "bool", 1},
      {DType::kBFloat16, 15, "bfloat16", 2},  {static_cast<DType>(99), 99, "unknown", 0},
  };
  for (const auto& [dtype, number, name, size] : dtypes) {
    CHECK_EQ(static_cast<int>(dtype), number);
    CHECK_EQ(to_string(dtype), name);
    CHECK_EQ(SizeOf(dtype), size);
  }
  static_assert(DTypeOf<const float> == DType::kFloat32);
  static_assert(DTypeOf<Half> == DType::kFloat16);
  static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2 && sizeof(bool) == 1);
}

// Every half except NaN is unchanged by a conversion to float and back.
TEST(HalfRoundTrips) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = Half::FromBits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(half);
    if (std::isnan(value)) {
      wrong += !std::isnan(static_cast<float>(Half(value)));
    } else {
      wrong += Half(value).bits != bits;
    }
  }
  CHECK_EQ(wrong, 0);
}

TEST(HalfRounds) {
  CHECK_EQ(Half(1.0F).bits, 0x3c00);
  CHECK_EQ(Half(1.0F + 0x1p-11F).bits, 0x3c00);      // a tie goes to even
  CHECK_EQ(Half(1.0F + 3 * 0x1p-11F).bits, 0x3c02);  // also upwards
  CHECK_EQ(Half(65519.0F).bits, 0x7bff);             // the largest
  CHECK_EQ(Half(65520.0F).bits, 0x7c00);             // infinity
  CHECK_EQ(Half(-65520.0F).bits, 0xfc00);
  CHECK_EQ(Half(0x1p-24F).bits, 0x0001);  // the smallest
  CHECK_EQ(Half(0x1p-25F).bits, 0x0000);  // a tie goes to zero
  CHECK_EQ(Half(1.5F * 0x1p-25F).bits, 0x0001);
  CHECK_EQ(static_cast<float>(Half::FromBits(0x3555)), 0.333251953125F);
}

TEST(BFloat16Rounds) {
  CHECK_EQ(BFloat16(1.0F).bits, 0x3f80);
  CHECK_EQ(BFloat16(1.0F + 0x1p-8F).bits, 0x3f80);      // a tie goes to even
  CHECK_EQ(BFloat16(1.0F + 3 * 0x1p-8F).bits, 0x3f82);  // also upwards
  CHECK_EQ(static_cast<float>(BFloat16::FromBits(0x4049)), 3.140625F);
  CHECK_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace aoti

int main() { return aoti::testing::RunAllTests(); }
