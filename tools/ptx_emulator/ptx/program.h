// A parsed PTX module: kernels of decoded instructions.
//
// Every operand is the number of a row of the register file, which has one 64-bit word per lane
// of a warp. Immediates, special registers and addresses of variables have rows too, which are
// filled before the kernel starts. Bits of a word beyond its type's width are unspecified:
// whoever reads a row casts it to the instruction's type.

#ifndef PTX_EMULATOR_PTX_PROGRAM_H_
#define PTX_EMULATOR_PTX_PROGRAM_H_

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/ptx_emulator/ptx/types.h"

namespace ptx_emulator {

class Warp;
struct Instruction;

// Executes the instruction for the lanes of `mask`.
using Handler = void (*)(Warp& warp, const Instruction& instruction, uint32_t mask);

class ParseError : public std::runtime_error {
 public:
  ParseError(uint32_t line, const std::string& what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
};

enum class Flow : uint8_t {
  kNext,
  kBranch,
  kExit,
  kBarrier,     // bar.sync and its kin: waits for other warps.
  kCollective,  // Waits until the lanes that take part have arrived.
};

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

enum class Rounding : uint8_t { kNearestEven, kZero, kDown, kUp, kNearestAway };

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::kNext;
  int guard = -1;  // Row of the predicate, or -1.
  bool guard_negated = false;
  bool flush = false;     // .ftz
  bool saturate = false;  // .sat, .satfinite
  bool to_integer = false;
  bool carry_in = false;
  bool carry_out = false;
  Type type = Type::kNone;
  Type from = Type::kNone;
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNearestEven;
  uint8_t negated = 0;   // Bit i: source i is a predicate with '!'.
  int destination = -1;  // Row, or -1 if there is none or it is '_'.
  int second = -1;       // Row of a second destination.
  std::array<int, 5> source{-1, -1, -1, -1, -1};
  std::vector<int> vector;  // Rows of the operands in braces, one after another.
  int address = -1;         // Row of the address, or -1 if it is `offset` alone.
  int64_t offset = 0;
  int64_t detail = 0;  // What the handler needs besides: a lop3 table, a kind.
  uint32_t target = 0;
  uint32_t line = 0;
  std::string text;
};

struct Variable {
  std::string name;
  uint64_t bytes = 0;
  uint64_t alignment = 1;
  uint64_t offset = 0;  // In its space; filled by the parser, and for .global by the loader.
  std::vector<uint8_t> contents;
};

enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kClock,
  kDynamicSharedBytes,
};

struct Kernel {
  std::string name;
  std::vector<Variable> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t frame_bytes = 0;   // Parameters and those of the calls in the body.
  uint32_t shared_bytes = 0;  // Static shared memory; dynamic shared memory follows.
  uint32_t local_bytes = 0;
  std::array<uint32_t, 3> required_threads{0, 0, 0};  // .reqntid, or zeros
  uint32_t most_threads = 1024;                       // .maxntid
  int registers = 0;                                  // Declared ones.
  int rows = 0;
  int carry_row = -1;
  std::vector<std::pair<int, uint64_t>> constants;  // Rows that never change.
  std::vector<std::pair<int, Special>> specials;
  std::vector<std::pair<int, std::string>> globals;  // Rows with addresses of .global variables.
  std::vector<Instruction> code;
};

struct Module {
  std::string target;          // "sm_80"
  int arch = 0;                // 80
  bool arch_specific = false;  // The 'a' of sm_90a.
  std::map<std::string, Variable> globals;
  std::map<std::string, Kernel> kernels;
};

// Throws ParseError, which names the line.
Module ParseModule(const std::string& source);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_PROGRAM_H_
