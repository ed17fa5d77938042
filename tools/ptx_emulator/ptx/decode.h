// Turns statements into instructions: each family of opcodes has its function.

#ifndef PTX_EMULATOR_PTX_DECODE_H_
#define PTX_EMULATOR_PTX_DECODE_H_

#include "tools/ptx_emulator/ptx/program.h"
#include "tools/ptx_emulator/ptx/statement.h"

namespace ptx_emulator {

// Fills in the handler and what it needs; false if the statement is of another family. An opcode
// of the family with modifiers that it does not know is false as well: the parser refuses it.
using DecodeFamily = bool (*)(const Statement& statement, Instruction& instruction);

bool DecodeInteger(const Statement& statement, Instruction& instruction);
bool DecodeBits(const Statement& statement, Instruction& instruction);
bool DecodeFloating(const Statement& statement, Instruction& instruction);
bool DecodeFunctions(const Statement& statement, Instruction& instruction);
bool DecodeHalf(const Statement& statement, Instruction& instruction);
bool DecodeConvert(const Statement& statement, Instruction& instruction);
bool DecodeCompare(const Statement& statement, Instruction& instruction);
bool DecodeMove(const Statement& statement, Instruction& instruction);
bool DecodeMemory(const Statement& statement, Instruction& instruction);
bool DecodeAtomic(const Statement& statement, Instruction& instruction);
bool DecodeAsyncCopy(const Statement& statement, Instruction& instruction);
bool DecodeWarp(const Statement& statement, Instruction& instruction);
bool DecodeMatrix(const Statement& statement, Instruction& instruction);
bool DecodeFlow(const Statement& statement, Instruction& instruction);

// Throws ParseError with the statement's text if no family knows it.
Instruction Decode(const Statement& statement);

// Operands 0 to n as destination and sources; false if they are not `sources` + 1 rows.
bool SimpleOperands(const Statement& statement, Instruction& instruction, int sources);

// Every modifier of the statement is a type or one of `known`.
bool OnlyModifiers(const Statement& statement, std::initializer_list<std::string_view> known);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_DECODE_H_
