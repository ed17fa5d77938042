#include "tools/ptx_emulator/ptx/decode.h"

#include <algorithm>

namespace ptx_emulator {

bool SimpleOperands(const Statement& statement, Instruction& instruction, int sources) {
  if (static_cast<int>(statement.operands.size()) != sources + 1) return false;
  for (const Operand& operand : statement.operands) {
    if (operand.kind != Operand::Kind::kRow) return false;
  }
  instruction.destination = statement.operands[0].row;
  for (int i = 0; i < sources; ++i) {
    const Operand& operand = statement.operands[i + 1];
    if (operand.row < 0) return false;
    instruction.source[i] = operand.row;
    if (operand.negated) instruction.negated |= 1 << i;
  }
  return true;
}

bool OnlyModifiers(const Statement& statement, std::initializer_list<std::string_view> known) {
  return std::all_of(statement.modifiers.begin(), statement.modifiers.end(),
                     [&](const std::string& modifier) {
                       return TypeNamed(modifier) != Type::kNone ||
                              std::find(known.begin(), known.end(), modifier) != known.end();
                     });
}

Instruction Decode(const Statement& statement) {
  static constexpr DecodeFamily kFamilies[] = {
      DecodeInteger, DecodeBits,    DecodeFloating, DecodeFunctions, DecodeHalf,
      DecodeConvert, DecodeCompare, DecodeMove,     DecodeMemory,    DecodeAtomic,
      DecodeWarp,    DecodeMatrix,  DecodeFlow,     DecodeAsyncCopy,
  };
  Instruction instruction;
  instruction.line = statement.line;
  instruction.text = statement.text;
  instruction.guard = statement.guard;
  instruction.guard_negated = statement.guard_negated;
  instruction.flush = statement.Has("ftz");
  instruction.saturate = statement.Has("sat") || statement.Has("satfinite");
  if (!statement.types.empty()) {
    instruction.type = statement.types.front();
    instruction.from = statement.types.back();
  }
  for (DecodeFamily family : kFamilies) {
    if (family(statement, instruction)) return instruction;
  }
  throw ParseError(statement.line, "the emulator does not know this instruction: " +
                                       statement.text + "; expected PTX for sm_75 to sm_89");
}

}  // namespace ptx_emulator
