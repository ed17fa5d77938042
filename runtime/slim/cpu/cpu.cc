#include "runtime/slim/cpu/cpu.h"

#include <atomic>

namespace aoti::slim {
namespace {

CpuLevel Detect() {
  // BEGIN detected_level: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) return CpuLevel::kX86V4;
  if (__builtin_cpu_supports("x86-64-v3")) return CpuLevel::kX86V3;
#endif
  // END detected_level
  return kLowestCpuLevel;
}

bool DetectVnni() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

std::atomic<bool>& Vnni() {
  static std::atomic<bool> vnni{DetectVnni()};
  return vnni;
}

bool DetectBFloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// Intel's CPUs since Sapphire Rapids, which leave such products to AMX, take more than four times
// as long for AVX512_BF16's product of pairs as for one of floats. Virtual machines often hide AMX.
bool DetectFastPairs() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel") && !__builtin_cpu_is("cooperlake")) return false;
#endif
  return DetectBFloat16();
}

std::atomic<bool>& MultipliesPairs() {
  static std::atomic<bool> multiplies{DetectFastPairs()};
  return multiplies;
}

std::atomic<CpuLevel>& Level() {
  static std::atomic<CpuLevel> level{Detect()};
  return level;
}

}  // namespace

CpuLevel CurrentCpuLevel() { return Level().load(std::memory_order_relaxed); }

bool CurrentCpuHasVnni() { return Vnni().load(std::memory_order_relaxed); }

bool CurrentCpuHasBFloat16() { return DetectBFloat16(); }

bool CurrentCpuMultipliesPairs() { return MultipliesPairs().load(std::memory_order_relaxed); }

void SetCpuLevel(CpuLevel level) { Level().store(level, std::memory_order_relaxed); }

}  // namespace aoti::slim

// For tests in other languages: 0 hides AVX512_VNNI, 1 restores the CPU's features.
extern "C" void aoti_slim_allow_vnni(int allowed) {
  aoti::slim::Vnni().store(allowed != 0 && aoti::slim::DetectVnni());
}

// For tests in other languages: 0 hides AVX512_BF16, 1 uses it wherever it is there; -1 restores
// the choice for this CPU.
extern "C" void aoti_slim_allow_bfloat16(int allowed) {
  const bool used = allowed < 0 ? aoti::slim::DetectFastPairs() : aoti::slim::DetectBFloat16();
  aoti::slim::MultipliesPairs().store(allowed != 0 && used);
}

// For tests in other languages; -1 restores the CPU's own level.
extern "C" void aoti_slim_set_cpu_level(int level) {
  using aoti::slim::CpuLevel;
  aoti::slim::SetCpuLevel(level < 0 ? aoti::slim::Detect() : static_cast<CpuLevel>(level));
}
