// Gives one clear error, instead of many of the linker, where the compiled runtime of a release
// does not fit the C++ library.

#ifndef AOTI_CXX_LIBRARY_H_
#define AOTI_CXX_LIBRARY_H_

// Defines what the following lines look at.
#include <version>

// Includes this header in turn, which is empty by then.
#include "aoti/cxx20.h"

#if !defined(__GLIBC__) || !defined(_GLIBCXX_RELEASE) || _GLIBCXX_RELEASE < 12 || \
    !_GLIBCXX_USE_CXX11_ABI
// clang-format off
#error the compiled runtime of rules_aoti is for glibc and for libstdc++ of GCC 12 or later with its C++11 ABI, and this C++ toolchain has another C or C++ library: put "build --@rules_aoti//runtime:from_source" into .bazelrc to have the runtime compiled
// clang-format on
// There is no such file: see cxx20.h.
#include "aoti/the_compiled_runtime_does_not_fit_the_cxx_library"
#endif

#endif  // AOTI_CXX_LIBRARY_H_
