// Every other header includes this one. It gives one clear error, instead of hundreds, if the
// compiler is told to use another standard than C++20.

#ifndef AOTI_CXX20_H_
#define AOTI_CXX20_H_

#if __cplusplus < 202002L
// clang-format off
#error rules_aoti needs C++20: put "build --cxxopt=-std=c++20 --host_cxxopt=-std=c++20" into .bazelrc, or "-std=c++20" into the copts of the target that is compiled here
// clang-format on
// There is no such file: the failed #include ends the compilation, which #error alone does not.
#include "aoti/the_compiler_is_not_told_to_use_cxx20"
#endif

#ifdef AOTI_PREBUILT_RUNTIME
#include "aoti/cxx_library.h"
#endif

#endif  // AOTI_CXX20_H_
