// The state space of an instruction that accesses memory, and the modifiers that only say how
// caches are used or how accesses are ordered: blocks and warps run one after another, so every
// access is sequentially consistent.

#ifndef PTX_EMULATOR_OPS_SPACES_H_
#define PTX_EMULATOR_OPS_SPACES_H_

#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {

inline Space SpaceOf(const Statement& statement) {
  if (statement.Has("global") || statement.Has("const")) return Space::kGlobal;
  if (statement.Has("shared") || statement.Has("shared::cta")) return Space::kShared;
  if (statement.Has("local")) return Space::kLocal;
  if (statement.Has("param")) return Space::kParam;
  return Space::kGeneric;
}

inline bool OnlyMemoryModifiers(const Statement& statement) {
  for (const std::string& modifier : statement.modifiers) {
    if (modifier.starts_with("L1::") || modifier.starts_with("L2::")) continue;
    static constexpr std::string_view kKnown[] = {
        "global",  "const", "shared", "shared::cta", "local",   "param",   "v2",
        "v4",      "v8",    "weak",   "volatile",    "relaxed", "acquire", "release",
        "acq_rel", "gpu",   "cta",    "sys",         "cluster", "nc",      "ca",
        "cg",      "cs",    "lu",     "cv",          "wb",      "wt",      "mmio"};
    bool known = TypeNamed(modifier) != Type::kNone;
    for (std::string_view name : kKnown) known = known || modifier == name;
    if (!known) return false;
  }
  return true;
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_SPACES_H_
