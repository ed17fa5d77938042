// Kernels are compiled once per CpuLevel, each time into a namespace with the level's name; see
// levels.bzl.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_LEVELS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_LEVELS_H_

#define AOTI_SLIM_DECLARE_KERNELS_OF(level, Type, table) \
  namespace level {                                      \
  extern const Type table;                               \
  }

// Declares `table` in the namespaces of all levels.
// BEGIN declared_kernels: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
#define AOTI_SLIM_DECLARE_KERNELS(Type, table)        \
  AOTI_SLIM_DECLARE_KERNELS_OF(baseline, Type, table) \
  AOTI_SLIM_DECLARE_KERNELS_OF(x86_v3, Type, table)   \
  AOTI_SLIM_DECLARE_KERNELS_OF(x86_v4, Type, table)
#elif defined(__aarch64__)
#define AOTI_SLIM_DECLARE_KERNELS(Type, table) AOTI_SLIM_DECLARE_KERNELS_OF(neon, Type, table)
#endif
// END declared_kernels

#endif  // AOTI_RUNTIME_SLIM_KERNELS_LEVELS_H_
