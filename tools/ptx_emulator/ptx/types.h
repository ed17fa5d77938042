// The types of PTX.

#ifndef PTX_EMULATOR_PTX_TYPES_H_
#define PTX_EMULATOR_PTX_TYPES_H_

#include <cstdint>
#include <string_view>

namespace ptx_emulator {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kTf32,
  kF16x2,
  kBf16x2,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
};

// kNone if `name`, such as "b32", is no type.
Type TypeNamed(std::string_view name);

// Size of a value of the type; a predicate counts as one byte.
int Bytes(Type type);

bool IsFloating(Type type);
bool IsSigned(Type type);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_TYPES_H_
