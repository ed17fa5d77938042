#include "runtime/core/program_library.h"

#include <dlfcn.h>

#include <string>

#include "runtime/core/runfiles.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

Error NotLoaded(const ProgramSpec& spec, const std::string& path) {
  const char* reason = dlerror();
  return {ErrorCode::kProgramNotLoaded,
          StrCat(spec.name, ": can't load the program of ", spec.label, " from ", path, ": ",
                 reason == nullptr ? "unknown reason" : reason)};
}

}  // namespace

Result<const ProgramVTable*> LoadProgram(const ProgramSpec& spec, const char* library_runfile,
                                         const char* symbol) {
  const auto path = FindRunfile(library_runfile, &spec, /*folder=*/true);
  if (!path.ok()) {
    return Error(ErrorCode::kProgramNotLoaded, StrCat(spec.name, ": ", path.error().message()));
  }
  void* library = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotLoaded(spec, *path);
  using Entry = const ProgramVTable* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, symbol));
  if (entry == nullptr) return NotLoaded(spec, *path);
  return entry();
}

Result<const ProgramVTable*> WithOperators(const ProgramSpec& spec,
                                           Result<const ProgramVTable*> program,
                                           std::initializer_list<const char*> libraries) {
  if (!program.ok()) return program;
  for (const char* name : libraries) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) continue;
    using Problems = const char* (*)();
    // Operators on at::Tensor have no such function: PyTorch's own macros refuse them.
    const auto problems = reinterpret_cast<Problems>(dlsym(library, "aoti_operators_problems"));
    std::string text = problems == nullptr ? "" : problems();
    dlclose(library);
    if (text.empty()) continue;
    text.pop_back();  // the end of the last line
    return Error(ErrorCode::kOperatorNotUsable, StrCat(spec.name, ": ", text));
  }
  return program;
}

}  // namespace aoti::internal
