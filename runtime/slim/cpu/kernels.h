// Selects the kernels for this CPU.

#ifndef AOTI_RUNTIME_SLIM_CPU_KERNELS_H_
#define AOTI_RUNTIME_SLIM_CPU_KERNELS_H_

#include "runtime/slim/cpu/cpu.h"

namespace aoti::slim {

// Takes the kernels for each level of this kind of CPU, the lowest level first.
template <typename Kernels, typename... Higher>
const Kernels& KernelsOfCurrentLevel(const Kernels& lowest, const Higher&... higher) {
  const int level = static_cast<int>(CurrentCpuLevel()) - static_cast<int>(kLowestCpuLevel);
  const Kernels* kernels = &lowest;
  int next = 0;
  // No array of the addresses: gcc 12 gave one the stack of a caller's array that was still in use.
  ((kernels = ++next == level ? &higher : kernels), ...);
  return *kernels;
}

}  // namespace aoti::slim

// `table` of the current level; a header in kernels/ declares it with AOTI_SLIM_DECLARE_KERNELS.
// BEGIN current_kernels: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
#define AOTI_SLIM_CURRENT_KERNELS(table) \
  ::aoti::slim::KernelsOfCurrentLevel(baseline::table, x86_v3::table, x86_v4::table)
#elif defined(__aarch64__)
#define AOTI_SLIM_CURRENT_KERNELS(table) neon::table
#endif
// END current_kernels

#endif  // AOTI_RUNTIME_SLIM_CPU_KERNELS_H_
