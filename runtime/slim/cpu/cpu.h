// Which of the shim's own kernels this CPU can run.

#ifndef AOTI_RUNTIME_SLIM_CPU_CPU_H_
#define AOTI_RUNTIME_SLIM_CPU_CPU_H_

namespace aoti::slim {

// Those of one kind of CPU are in order: each has all of the one before.
enum class CpuLevel {
  // BEGIN cpu_levels: generated from toolchain/tables by ./bazelw run //tools/tables:update
  kBaseline,
  kX86V3,
  kX86V4,
  kNeon,
  // END cpu_levels
};

// What every CPU of this kind has.
// BEGIN lowest_level: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kBaseline;
#elif defined(__aarch64__)
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kNeon;
#else
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kBaseline;
#endif
// END lowest_level

// The best level of this CPU (and operating system), or the one that tests asked for.
CpuLevel CurrentCpuLevel();

// Whether the CPU has AVX512_VNNI and AVX512_VBMI, which are no part of a level.
bool CurrentCpuHasVnni();

// For tests and benchmarks: use this level's kernels from now on; the CPU must have it.
void SetCpuLevel(CpuLevel level);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CPU_CPU_H_
