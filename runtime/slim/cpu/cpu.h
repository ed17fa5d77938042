// Which of slim's kernels this CPU can run.

#ifndef AOTI_RUNTIME_SLIM_CPU_CPU_H_
#define AOTI_RUNTIME_SLIM_CPU_CPU_H_

namespace aoti::slim {

// Levels of one architecture are in ascending order: each includes the one before.
enum class CpuLevel {
  // BEGIN cpu_levels: generated from toolchain/tables by ./bazelw run //tools/tables:update
  kBaseline,
  kX86V3,
  kX86V4,
  kNeon,
  // END cpu_levels
};

// The level that every CPU of this architecture has.
// BEGIN lowest_level: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kBaseline;
#elif defined(__aarch64__)
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kNeon;
#else
inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::kBaseline;
#endif
// END lowest_level

// The best level of this CPU (and operating system), or the level that a test has set.
CpuLevel CurrentCpuLevel();

// Whether the CPU has AVX512_VNNI and AVX512_VBMI, which no level includes.
bool CurrentCpuHasVnni();

// Whether the CPU has AVX512_BF16, which no level includes.
bool CurrentCpuHasBFloat16();

// Whether it has, and multiplies bfloat16 with it faster than as floats.
bool CurrentCpuMultipliesPairs();

// Whether the CPU has AMX for bfloat16, which no level includes, and the operating system lets this
// process use it. The first call asks for it.
bool CurrentCpuHasAmxBFloat16();

// The same for int8.
bool CurrentCpuHasAmxInt8();

// For tests and benchmarks: uses this level's kernels from now on; the CPU must support it.
void SetCpuLevel(CpuLevel level);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_CPU_CPU_H_
