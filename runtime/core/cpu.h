// Which instruction sets of ProgramVariant::isa this CPU has.

#ifndef AOTI_RUNTIME_CORE_CPU_H_
#define AOTI_RUNTIME_CORE_CPU_H_

#include <optional>
#include <string>
#include <string_view>

#include "aoti/device_type.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"

namespace aoti::internal {

// The features of an instruction set that the CPU (or its operating system) lacks, such as "AVX2,
// FMA"; empty if it lacks none. For an unknown name, the name itself.
std::string MissingOf(std::string_view isa);

// The first variant for the device that the CPU can run. Without a device: one for the CPU if there
// is one, otherwise for the device that there is. The error lists the devices that there are, or
// names what the CPU lacks for each variant.
Result<const ProgramVariant*> ChooseVariant(const ProgramSpec& spec,
                                            std::optional<DeviceType> device);

// For tests: simulates a CPU with `isa` and the levels below it, and nothing else; empty: the real
// CPU.
void PretendCpu(std::string_view isa);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_CPU_H_
