#include "runtime/slim/tensor/dtype.h"

#include <limits>

namespace aoti::slim {
namespace {

struct Facts {
  std::size_t size;
  const char* name;
};

// Of those that models neither take nor return.
const Facts* InsideOnly(ScalarType dtype) {
  static constexpr Facts kComplex128 = {16, "complex128"};
  static constexpr Facts kUInt16 = {2, "uint16"};
  static constexpr Facts kUInt32 = {4, "uint32"};
  static constexpr Facts kUInt64 = {8, "uint64"};
  switch (dtype) {
    case ScalarType::kComplex128:
      return &kComplex128;
    case ScalarType::kUInt16:
      return &kUInt16;
    case ScalarType::kUInt32:
      return &kUInt32;
    case ScalarType::kUInt64:
      return &kUInt64;
    default:
      return nullptr;
  }
}

// Not for the above, nor for numbers that are no dtype: 0 bytes.
std::size_t PublicSizeOf(ScalarType dtype) {
  const auto number = static_cast<std::int32_t>(dtype);
  if (number < 0 || number > std::numeric_limits<std::int8_t>::max()) return 0;
  return aoti::SizeOf(static_cast<DType>(number));
}

}  // namespace

std::size_t SizeOf(ScalarType dtype) {
  switch (dtype) {  // the common ones, without a search
    case ScalarType::kFloat32:
      return 4;
    case ScalarType::kInt64:
      return 8;
    default:
      if (const Facts* facts = InsideOnly(dtype); facts != nullptr) return facts->size;
      const std::size_t size = PublicSizeOf(dtype);
      if (size == 0) {
        throw OpError(StrCat("dtype number ", static_cast<int>(dtype), " is not supported"));
      }
      return size;
  }
}

std::string_view NameOf(ScalarType dtype) {
  if (const Facts* facts = InsideOnly(dtype); facts != nullptr) return facts->name;
  if (PublicSizeOf(dtype) == 0) return "of an unknown number";
  return to_string(static_cast<DType>(dtype));
}

bool IsFloating(ScalarType dtype) {
  return dtype == ScalarType::kFloat32 || dtype == ScalarType::kFloat64 ||
         dtype == ScalarType::kFloat16 || dtype == ScalarType::kBFloat16;
}

bool IsComplex(ScalarType dtype) {
  return dtype == ScalarType::kComplex64 || dtype == ScalarType::kComplex128;
}

bool IsIntegral(ScalarType dtype) { return !IsFloating(dtype) && !IsComplex(dtype); }

}  // namespace aoti::slim
