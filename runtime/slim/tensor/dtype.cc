#include "runtime/slim/tensor/dtype.h"

namespace aoti::slim {
namespace {

struct Facts {
  DType dtype;
  std::size_t size;
  const char* name;
};

constexpr Facts kFacts[] = {
    {DType::kUInt8, 1, "uint8"},         {DType::kInt8, 1, "int8"},
    {DType::kInt16, 2, "int16"},         {DType::kInt32, 4, "int32"},
    {DType::kInt64, 8, "int64"},         {DType::kFloat16, 2, "float16"},
    {DType::kFloat32, 4, "float32"},     {DType::kFloat64, 8, "float64"},
    {DType::kComplex64, 8, "complex64"}, {DType::kComplex128, 16, "complex128"},
    {DType::kBool, 1, "bool"},           {DType::kBFloat16, 2, "bfloat16"},
    {DType::kUInt16, 2, "uint16"},       {DType::kUInt32, 4, "uint32"},
    {DType::kUInt64, 8, "uint64"},
};

const Facts* Find(DType dtype) {
  for (const Facts& facts : kFacts) {
    if (facts.dtype == dtype) return &facts;
  }
  return nullptr;
}

}  // namespace

std::size_t SizeOf(DType dtype) {
  switch (dtype) {  // the common ones, without a search
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
      return 8;
    default:
      const Facts* facts = Find(dtype);
      if (facts == nullptr) {
        throw OpError(Text("dtype number ", static_cast<int>(dtype), " is not supported"));
      }
      return facts->size;
  }
}

const char* NameOf(DType dtype) {
  const Facts* facts = Find(dtype);
  return facts == nullptr ? "of an unknown number" : facts->name;
}

bool IsFloating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

bool IsIntegral(DType dtype) { return !IsFloating(dtype) && !IsComplex(dtype); }

}  // namespace aoti::slim
