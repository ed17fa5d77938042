// The rounding that an instruction's modifiers ask for.

#ifndef PTX_EMULATOR_OPS_ROUNDING_H_
#define PTX_EMULATOR_OPS_ROUNDING_H_

#include "tools/ptx_emulator/ptx/program.h"
#include "tools/ptx_emulator/ptx/statement.h"

namespace ptx_emulator {

// .rn and .rni: to the nearest; also without a modifier.
inline Rounding RoundingOf(const Statement& statement) {
  if (statement.Has("rz") || statement.Has("rzi")) return Rounding::kZero;
  if (statement.Has("rm") || statement.Has("rmi")) return Rounding::kDown;
  if (statement.Has("rp") || statement.Has("rpi")) return Rounding::kUp;
  if (statement.Has("rna")) return Rounding::kNearestAway;
  return Rounding::kNearestEven;
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_ROUNDING_H_
