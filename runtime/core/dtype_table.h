// The properties of each dtype.

#ifndef AOTI_RUNTIME_CORE_DTYPE_TABLE_H_
#define AOTI_RUNTIME_CORE_DTYPE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aoti/dlpack.h"
#include "aoti/dtype.h"

namespace aoti::internal {

struct DTypeFacts {
  DType dtype;
  std::string_view name;  // in torch
  std::size_t bytes;      // per element
  dlpack::DLDataTypeCode code;
  std::string_view safetensors;
  std::string_view format;  // in Python's struct module; empty if it and NumPy lack the dtype
};

inline constexpr DTypeFacts kDTypes[] = {
    // BEGIN facts: generated from toolchain/tables by ./bazelw run //tools/tables:update
    {DType::kUInt8, "uint8", 1, dlpack::kDLUInt, "U8", "B"},
    {DType::kInt8, "int8", 1, dlpack::kDLInt, "I8", "b"},
    {DType::kInt16, "int16", 2, dlpack::kDLInt, "I16", "h"},
    {DType::kInt32, "int32", 4, dlpack::kDLInt, "I32", "i"},
    {DType::kInt64, "int64", 8, dlpack::kDLInt, "I64", "q"},
    {DType::kFloat16, "float16", 2, dlpack::kDLFloat, "F16", "e"},
    {DType::kFloat32, "float32", 4, dlpack::kDLFloat, "F32", "f"},
    {DType::kFloat64, "float64", 8, dlpack::kDLFloat, "F64", "d"},
    {DType::kComplex64, "complex64", 8, dlpack::kDLComplex, "C64", "Zf"},
    {DType::kBool, "bool", 1, dlpack::kDLBool, "BOOL", "?"},
    {DType::kBFloat16, "bfloat16", 2, dlpack::kDLBfloat, "BF16", ""},
    // END facts
};

// For each number that a DType may be, its row in kDTypes and 1; 0 for those that are none. Every
// call asks for the dtypes of all inputs, so this is no search.
inline constexpr auto kRowsOfDTypes = [] {
  std::array<std::uint8_t, 256> rows = {};
  std::uint8_t row = 0;
  for (const DTypeFacts& facts : kDTypes) rows[static_cast<std::uint8_t>(facts.dtype)] = ++row;
  return rows;
}();

// Null for a number that is not a DType.
constexpr const DTypeFacts* FactsOf(DType dtype) {
  const auto number = static_cast<std::size_t>(dtype);
  const std::size_t row = number < kRowsOfDTypes.size() ? kRowsOfDTypes[number] : 0;
  return row == 0 ? nullptr : &kDTypes[row - 1];
}

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_DTYPE_TABLE_H_
