// Selects the kernels for this CPU.

#ifndef AOTI_RUNTIME_SLIM_CPU_KERNELS_H_
#define AOTI_RUNTIME_SLIM_CPU_KERNELS_H_

#include <cstddef>
#include <iterator>
#include <type_traits>

#include "runtime/slim/cpu/cpu.h"

namespace aoti::slim {

// `kernels`: of the levels of this kind of CPU, the lowest first.
template <typename... Kernels>
const auto& KernelsOfCurrentLevel(const Kernels&... kernels) {
  const std::common_type_t<Kernels...>* const levels[] = {&kernels...};
  const auto level =
      static_cast<std::size_t>(CurrentCpuLevel()) - static_cast<std::size_t>(kLowestCpuLevel);
  return *levels[level < std::size(levels) ? level : 0];
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
