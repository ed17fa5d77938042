// Finds files that were built with a program, at run time.

#ifndef AOTI_RUNTIME_CORE_RUNFILES_H_
#define AOTI_RUNTIME_CORE_RUNFILES_H_

#include <string>

#include "aoti/result.h"

namespace aoti::internal {

// The path of a runfile, such as "_main/models/encoder.weights.safetensors". It is looked for, in
// this order:
//   1. in $RUNFILES_DIR and in $RUNFILES_MANIFEST_FILE;
//   2. in the runfiles tree beside the program, and in the one beside the object (the program or a
//      shared library) that holds `anchor`;
//   3. in a runfiles tree that the program or that object lies in;
//   4. beside either of them, where deployed programs have it: the file, or, if `folder` is set,
//      the folder that contains it.
//
// Errors: kWeightsNotFound, whose message lists the places.
Result<std::string> FindRunfile(const std::string& runfile, const void* anchor,
                                bool folder = false);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_RUNFILES_H_
