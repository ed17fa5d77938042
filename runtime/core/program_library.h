// Programs that live in a shared library of their own, because they need libtorch.

#ifndef AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_
#define AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_

#include <initializer_list>

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/program.h"

namespace aoti::internal {

// Loads the library, a runfile such as "_main/models/encoder.libtorch/libprogram.so", and asks its
// function `symbol` for the program. The library stays loaded. Thread safe.
// Errors: kProgramNotLoaded.
Result<const ProgramVTable*> LoadProgram(const ProgramSpec& spec, const char* library_runfile,
                                         const char* symbol);

// The program, unless the operators of one of the libraries, which are loaded with it, can't be
// used in this process. libraries: their names, such as "libops_scale.so". Errors:
// kOperatorNotUsable.
Result<const ProgramVTable*> WithOperators(const ProgramSpec& spec,
                                           Result<const ProgramVTable*> program,
                                           std::initializer_list<const char*> libraries);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PROGRAM_LIBRARY_H_
