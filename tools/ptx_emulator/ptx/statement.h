// One instruction of a body, as written: names are not resolved yet.

#ifndef PTX_EMULATOR_PTX_STATEMENT_H_
#define PTX_EMULATOR_PTX_STATEMENT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ptx_emulator/ptx/types.h"

namespace ptx_emulator {

struct Operand {
  enum class Kind { kRow, kVector, kAddress, kName };

  Kind kind = Kind::kRow;
  int row = -1;  // Of a kAddress: its base, or -1. '_' is a kRow of -1.
  bool negated = false;
  int64_t offset = 0;  // Of a kAddress; the immediate of a kRow that is one.
  bool immediate = false;
  bool decimal = false;  // An immediate that is written with a point.
  std::vector<int> rows;
  std::string name;
};

struct Statement {
  uint32_t line = 0;
  std::string text;
  std::string opcode;                  // "fma"
  std::vector<std::string> modifiers;  // "rn", "f32"
  std::vector<Type> types;             // The modifiers that are types, in their order.
  std::vector<Operand> operands;
  int bar = -1;  // Row after '|' of the first operand.
  int guard = -1;
  bool guard_negated = false;

  bool Has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
  }
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_STATEMENT_H_
