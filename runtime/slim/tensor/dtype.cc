#include "runtime/slim/tensor/dtype.h"

#include <array>
#include <cstdint>

namespace aoti::slim {
namespace {

enum class Kind : std::uint8_t { kIntegral, kFloating, kComplex };

struct Facts {
  ScalarType dtype;
  std::string_view name;
  std::size_t size = 0;
  Kind kind = Kind::kIntegral;
};

constexpr Facts kAll[] = {
    // BEGIN scalar_facts: generated from toolchain/tables by ./bazelw run //tools/tables:update
    {ScalarType::kUInt8, "uint8", 1, Kind::kIntegral},
    {ScalarType::kInt8, "int8", 1, Kind::kIntegral},
    {ScalarType::kInt16, "int16", 2, Kind::kIntegral},
    {ScalarType::kInt32, "int32", 4, Kind::kIntegral},
    {ScalarType::kInt64, "int64", 8, Kind::kIntegral},
    {ScalarType::kFloat16, "float16", 2, Kind::kFloating},
    {ScalarType::kFloat32, "float32", 4, Kind::kFloating},
    {ScalarType::kFloat64, "float64", 8, Kind::kFloating},
    {ScalarType::kComplex64, "complex64", 8, Kind::kComplex},
    {ScalarType::kComplex128, "complex128", 16, Kind::kComplex},
    {ScalarType::kBool, "bool", 1, Kind::kIntegral},
    {ScalarType::kBFloat16, "bfloat16", 2, Kind::kFloating},
    {ScalarType::kUInt16, "uint16", 2, Kind::kIntegral},
    {ScalarType::kUInt32, "uint32", 4, Kind::kIntegral},
    {ScalarType::kUInt64, "uint64", 8, Kind::kIntegral},
    // END scalar_facts
};

// Indexed by number; the size is 0 if there is no such dtype.
constexpr auto kFacts = [] {
  std::array<Facts, 32> facts{};
  for (const Facts& fact : kAll) facts[static_cast<std::size_t>(fact.dtype)] = fact;
  return facts;
}();

constexpr Facts kUnknown{};

const Facts& FactsOf(ScalarType dtype) {
  const auto number = static_cast<std::uint32_t>(dtype);
  return number < kFacts.size() ? kFacts[number] : kUnknown;
}

}  // namespace

std::size_t SizeOf(ScalarType dtype) {
  const std::size_t size = FactsOf(dtype).size;
  if (size == 0) {
    throw OpError(StrCat("dtype number ", static_cast<int>(dtype), " is not supported"));
  }
  return size;
}

std::string_view NameOf(ScalarType dtype) {
  const Facts& facts = FactsOf(dtype);
  return facts.size == 0 ? "of an unknown number" : facts.name;
}

bool IsFloating(ScalarType dtype) { return FactsOf(dtype).kind == Kind::kFloating; }

bool IsComplex(ScalarType dtype) { return FactsOf(dtype).kind == Kind::kComplex; }

bool IsIntegral(ScalarType dtype) { return FactsOf(dtype).kind == Kind::kIntegral; }

}  // namespace aoti::slim
