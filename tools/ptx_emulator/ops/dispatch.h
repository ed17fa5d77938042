// Chooses the instance of a handler for an instruction's type.

#ifndef PTX_EMULATOR_OPS_DISPATCH_H_
#define PTX_EMULATOR_OPS_DISPATCH_H_

#include "tools/ptx_emulator/ops/scalar.h"

namespace ptx_emulator {

inline bool IsInteger(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}

// Op::Run<T> for the integers; false for other types.
template <typename Op>
bool SetIntegerHandler(Instruction& instruction) {
  switch (instruction.type) {
    case Type::kU16:
      instruction.run = Op::template Run<uint16_t>;
      return true;
    case Type::kU32:
      instruction.run = Op::template Run<uint32_t>;
      return true;
    case Type::kU64:
      instruction.run = Op::template Run<uint64_t>;
      return true;
    case Type::kS16:
      instruction.run = Op::template Run<int16_t>;
      return true;
    case Type::kS32:
      instruction.run = Op::template Run<int32_t>;
      return true;
    case Type::kS64:
      instruction.run = Op::template Run<int64_t>;
      return true;
    default:
      return false;
  }
}

// Op::Run<T> for unsigned integers of the type's size.
template <typename Op>
bool SetBitsHandler(Instruction& instruction) {
  switch (Bytes(instruction.type)) {
    case 1:
      instruction.run = Op::template Run<uint8_t>;
      return true;
    case 2:
      instruction.run = Op::template Run<uint16_t>;
      return true;
    case 4:
      instruction.run = Op::template Run<uint32_t>;
      return true;
    case 8:
      instruction.run = Op::template Run<uint64_t>;
      return true;
    default:
      return false;
  }
}

// Op::Run<T> for the scalar floating-point types.
template <typename Op>
bool SetFloatingHandler(Instruction& instruction) {
  switch (instruction.type) {
    case Type::kF32:
      instruction.run = Op::template Run<float>;
      return true;
    case Type::kF64:
      instruction.run = Op::template Run<double>;
      return true;
    case Type::kF16:
      instruction.run = Op::template Run<Half>;
      return true;
    case Type::kBf16:
      instruction.run = Op::template Run<Bfloat>;
      return true;
    default:
      return false;
  }
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_DISPATCH_H_
