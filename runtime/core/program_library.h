// Programs that live in a shared library of their own, because they need libtorch.

#ifndef AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_
#define AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/program.h"

namespace aoti::internal {

// Loads the library, a runfile such as "_main/models/encoder.libtorch/libprogram.so", and asks its
// function `symbol` for the program. The library stays loaded. Thread safe.
// Errors: kProgramNotLoaded.
Result<const ProgramVTable*> LoadProgram(const ProgramSpec& spec, const char* library_runfile,
                                         const char* symbol);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_
