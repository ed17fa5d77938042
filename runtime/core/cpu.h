// Which instruction sets of ProgramVariant::isa this CPU has.

#ifndef AOTI_RUNTIME_CORE_CPU_H_
#define AOTI_RUNTIME_CORE_CPU_H_

#include <string>
#include <string_view>

#include "aoti/program_spec.h"
#include "aoti/result.h"

namespace aoti::internal {

// What the CPU (or its operating system) lacks of an instruction set, such as "AVX2, FMA"; empty
// where it lacks nothing. Of a name that is not known here it lacks the name.
std::string MissingOf(std::string_view isa);

// The first variant that the CPU can run. The error says what each of them needs.
Result<const ProgramVariant*> ChooseVariant(const ProgramSpec& spec);

// For tests: as if the CPU had `isa` and what is below it, and no more; empty: the CPU as it is.
void PretendCpu(std::string_view isa);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_CPU_H_
