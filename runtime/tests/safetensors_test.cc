#include "runtime/core/safetensors.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/tests/check.h"

namespace aoti::internal {
namespace {

std::string File(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

Result<std::vector<StoredTensor>> Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "w");
}

std::string Problem(const std::string& header, const std::string& data = "") {
  const auto result = Parse(File(header, data));
  if (result.ok()) return "ok";
  CHECK_TRUE(result.error().code() == ErrorCode::kWeightsMalformed);
  const std::string prefix = "w: not a valid safetensors file: ";
  CHECK_EQ(result.error().message().substr(0, prefix.size()), prefix);
  return result.error().message().substr(prefix.size());
}

TEST(ReadsTensors) {
  const std::string file = File(
      R"({ "__metadata__": {"format":"pt"}, "b" : {"shape":[],"dtype":"U8","data_offsets":[8,9]},)"
      R"("a\"\u00e9\ud83d\ude00/\n":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]} }  )",
      std::string(9, '\x07'));
  const auto tensors = Parse(file);
  REQUIRE_OK(tensors);
  CHECK_EQ(tensors->size(), 2U);
  CHECK_EQ((*tensors)[0].name, "b");
  CHECK_TRUE((*tensors)[0].sizes.empty());
  CHECK_EQ((*tensors)[1].name, "a\"\xc3\xa9\xf0\x9f\x98\x80/\n");
  CHECK_TRUE((*tensors)[1].dtype == DType::kFloat32);
  CHECK_TRUE((*tensors)[1].sizes == std::vector<std::int64_t>({2, 1}));
  CHECK_EQ((*tensors)[1].bytes.size(), 8U);
  CHECK_EQ(std::to_integer<int>((*tensors)[1].bytes[7]), 7);
}

TEST(NamesEveryDType) {
  const std::pair<DType, std::string_view> names[] = {
      {DType::kUInt8, "U8"},    {DType::kInt8, "I8"},      {DType::kInt16, "I16"},
      {DType::kInt32, "I32"},   {DType::kInt64, "I64"},    {DType::kFloat16, "F16"},
      {DType::kFloat32, "F32"}, {DType::kFloat64, "F64"},  {DType::kComplex64, "C64"},
      {DType::kBool, "BOOL"},   {DType::kBFloat16, "BF16"}};
  for (const auto& [dtype, name] : names) {
    CHECK_EQ(SafetensorsName(dtype), name);
    const std::string bytes(SizeOf(dtype), '\0');
    const auto result = Parse(File(StrCat(R"({"a":{"dtype":")", name, R"(","shape":[1],)",
                                          R"("data_offsets":[0,)", bytes.size(), "]}}"),
                                   bytes));
    REQUIRE_OK(result);
    CHECK_TRUE((*result)[0].dtype == dtype);
  }
  CHECK_EQ(SafetensorsName(static_cast<DType>(99)), "");
}

TEST(ReadsFilesWithoutTensors) {
  CHECK_EQ(Problem("{}"), "ok");
  CHECK_EQ(Problem(R"({"__metadata__":{}})"), "ok");
  CHECK_EQ(Problem(R"({"e":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]}})"), "ok");
}

TEST(RefusesWrongLengths) {
  const auto short_file = Parse("1234567");
  CHECK_ERROR(short_file, ErrorCode::kWeightsMalformed,
              "w: not a valid safetensors file: it has only 7 bytes");
  const auto long_header = Parse(std::string("\x03\0\0\0\0\0\0\0{}", 10));
  CHECK_ERROR(
      long_header, ErrorCode::kWeightsMalformed,
      "w: not a valid safetensors file: its first 8 bytes say that the header has 3 bytes, but "
      "the file has 10");
  const auto huge_header = Parse(std::string(8, '\xff') + "{}");
  CHECK_ERROR(huge_header, ErrorCode::kWeightsMalformed,
              "w: not a valid safetensors file: its first 8 bytes say that the header has "
              "18446744073709551615 bytes, but the file has 10");
}

TEST(RefusesInvalidHeaders) {
  CHECK_EQ(Problem(""), "header, byte 0: expected '{'");
  CHECK_EQ(Problem("[]"), "header, byte 0: expected '{'");
  CHECK_EQ(Problem("{} x"), "header, byte 3: something follows the closing brace");
  CHECK_EQ(Problem("{\"a"), "header, byte 3: a string does not end");
  CHECK_EQ(Problem("{\"a\\"), "header, byte 4: a string does not end");
  CHECK_EQ(Problem("{\"\\x\":1}"), "header, byte 4: bad escape in a string");
  CHECK_EQ(Problem("{\"\\ud800\":1}"), "header, byte 8: bad escape in a string");
  CHECK_EQ(Problem("{\"\n\":1}"), "header, byte 3: control character in a string");
  CHECK_EQ(Problem(R"({"a":[]})"), "header, byte 5: expected '{'");
  CHECK_EQ(Problem(R"({"a":{"dtype":"F32"}})"),
           "header, byte 20: tensor \"a\" lacks dtype, shape or data_offsets");
  CHECK_EQ(Problem(R"({"a":{"x":1}})"), "header, byte 10: unknown or repeated key \"x\"");
  CHECK_EQ(Problem(R"({"a":{"dtype":"F32","dtype":"F32"}})"),
           "header, byte 28: unknown or repeated key \"dtype\"");
  CHECK_EQ(Problem(R"({"a":{"shape":[-1]}})"),
           "header, byte 15: expected a number that is not negative");
  CHECK_EQ(Problem(R"({"a":{"shape":[99999999999999999999]}})"),
           "header, byte 33: a number is too large");
  CHECK_EQ(Problem(R"({"a":{"data_offsets":[1,2,3]}})"),
           "header, byte 28: data_offsets is not a pair");
  CHECK_EQ(Problem(std::string(100000, '{')), "header, byte 1: expected '\"'");
}

TEST(RefusesWrongEntries) {
  CHECK_EQ(Problem(R"({"a":{"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]}})", "1"),
           "tensor \"a\" has dtype \"F8_E4M3\", which is not supported");
  CHECK_EQ(Problem(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "123"),
           "tensor \"a\" lies at bytes 0..4 of 3");
  CHECK_EQ(Problem(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", "123"),
           "tensor \"a\" lies at bytes 2..1 of 3");
  CHECK_EQ(Problem(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
           "tensor \"a\" is float32[2], but has 4 bytes");
  CHECK_EQ(Problem(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"),
           "tensor \"a\" is float32[4611686018427387904, 4], but has 0 bytes");
}

TEST(RefusesOverlapsGapsAndDuplicates) {
  const auto two = [](const char* second, const char* a, const char* b, const std::string& data) {
    const auto entry = [](const std::string& name, const std::string& offsets) {
      return "\"" + name + R"(":{"dtype":"U8","shape":[2],"data_offsets":[)" + offsets + "]}";
    };
    return Problem("{" + entry("a", a) + "," + entry(second, b) + "}", data);
  };
  CHECK_EQ(two("b", "0,2", "1,3", "123"), "tensor \"b\" begins at byte 1, inside another tensor");
  CHECK_EQ(two("b", "0,2", "3,5", "12345"), "tensor \"b\" begins at byte 3, after a gap");
  CHECK_EQ(two("b", "0,2", "2,4", "12345"), "1 bytes at the end belong to no tensor");
  CHECK_EQ(two("a", "0,2", "2,4", "1234"), "tensor \"a\" occurs twice");
  CHECK_EQ(two("b", "0,2", "2,4", "1234"), "ok");
}

}  // namespace
}  // namespace aoti::internal

int main() { return aoti::testing::RunAllTests(); }
