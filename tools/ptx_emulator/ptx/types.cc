#include "tools/ptx_emulator/ptx/types.h"

#include <unordered_map>

namespace ptx_emulator {

Type TypeNamed(std::string_view name) {
  static const std::unordered_map<std::string_view, Type> kNames = {
      {"pred", Type::kPred},     {"b8", Type::kB8},       {"b16", Type::kB16},
      {"b32", Type::kB32},       {"b64", Type::kB64},     {"b128", Type::kB128},
      {"u8", Type::kU8},         {"u16", Type::kU16},     {"u32", Type::kU32},
      {"u64", Type::kU64},       {"s8", Type::kS8},       {"s16", Type::kS16},
      {"s32", Type::kS32},       {"s64", Type::kS64},     {"f16", Type::kF16},
      {"bf16", Type::kBf16},     {"f32", Type::kF32},     {"f64", Type::kF64},
      {"tf32", Type::kTf32},     {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBf16x2},
      {"e4m3", Type::kE4m3},     {"e5m2", Type::kE5m2},   {"e4m3x2", Type::kE4m3x2},
      {"e5m2x2", Type::kE5m2x2},
  };
  auto found = kNames.find(name);
  return found == kNames.end() ? Type::kNone : found->second;
}

int Bytes(Type type) {
  switch (type) {
    case Type::kNone:
      return 0;
    case Type::kPred:
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
    case Type::kE4m3:
    case Type::kE5m2:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBf16:
    case Type::kE4m3x2:
    case Type::kE5m2x2:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kTf32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return 4;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
    case Type::kB128:
      return 16;
  }
  return 0;
}

bool IsFloating(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kBf16:
    case Type::kF32:
    case Type::kF64:
    case Type::kTf32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return true;
    default:
      return false;
  }
}

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

}  // namespace ptx_emulator
