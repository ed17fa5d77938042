// Which of the shim's own kernels this CPU can run.

#ifndef AOTI_RUNTIME_SLIM_CPU_CPU_H_
#define AOTI_RUNTIME_SLIM_CPU_CPU_H_

namespace aoti::slim {

// Ordered: each x86 level has all of the one before.
enum class CpuLevel { kBaseline, kX86V3, kX86V4, kNeon };

// The best level of this CPU (and operating system), or the one that tests asked for.
CpuLevel CurrentCpuLevel();

// Whether the CPU has AVX512_VNNI and AVX512_VBMI, which are no part of a level.
bool CurrentCpuHasVnni();

// For tests and benchmarks: use this level's kernels from now on; the CPU must have it.
void SetCpuLevel(CpuLevel level);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CPU_CPU_H_
