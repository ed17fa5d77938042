// Picks the kernels that this CPU runs.

#ifndef AOTI_RUNTIME_SLIM_CPU_KERNELS_H_
#define AOTI_RUNTIME_SLIM_CPU_KERNELS_H_

#include "runtime/slim/cpu/cpu.h"

namespace aoti::slim {

template <typename Kernels>
const Kernels& KernelsOfCurrentLevel(const Kernels& baseline, const Kernels& x86_v3,
                                     const Kernels& x86_v4) {
  switch (CurrentCpuLevel()) {
    case CpuLevel::kX86V4:
      return x86_v4;
    case CpuLevel::kX86V3:
      return x86_v3;
    default:
      return baseline;
  }
}

}  // namespace aoti::slim

// `table` of the current level; a header in kernels/ declares it with AOTI_SLIM_DECLARE_KERNELS.
#if defined(__x86_64__)
#define AOTI_SLIM_CURRENT_KERNELS(table) \
  ::aoti::slim::KernelsOfCurrentLevel(baseline::table, x86_v3::table, x86_v4::table)
#else
#define AOTI_SLIM_CURRENT_KERNELS(table) neon::table
#endif

#endif  // AOTI_RUNTIME_SLIM_CPU_KERNELS_H_
