// Registers operators with libtorch, and notes what is wrong with them, for who loads the library:
// PyTorch's own functions end the process, or say nothing.
//
// A process may have several libraries with operators, and libtorch would replace the kernel of one
// by another's of the same name. So each library asks the others, by aoti_operators_kernel().

#include <dlfcn.h>
#include <link.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/operators/recorded_problem.h"
#include "runtime/operators/schema.h"

using Boxed = void (*)(StableIValue*, uint64_t, uint64_t);

namespace {

struct Kernel {
  Boxed boxed = nullptr;
  std::string where;
};

struct Operator {
  std::string schema;
  std::string where;
  std::map<std::string, Kernel> kernels;  // by the dispatch key
};

// Registrations run while the library is loaded, in any order: these exist from the first one on.
std::string& Problems() {
  static auto* const problems = new std::string;
  return *problems;
}
std::map<std::string, Operator>& Operators() {
  static auto* const operators = new std::map<std::string, Operator>;
  return *operators;
}
std::map<Boxed, std::string>& Types() {
  static auto* const types = new std::map<Boxed, std::string>;
  return *types;
}

// The label of the target that the library is of.
std::string& Target() {
  static auto* const target = new std::string;
  return *target;
}

void Note(const std::string& problem) { Problems() += problem + "\n"; }

// libtorch's reason, without the lines of C++ that led to it.
std::string Reason() {
  const char* what = torch_exception_get_what_without_backtrace();
  return what == nullptr ? "no reason is given" : what;
}

std::string Qualified(std::string_view name_space, std::string_view name) {
  const bool whole = name.find("::") != std::string_view::npos;
  return whole ? std::string(name) : std::string(name_space) + "::" + std::string(name);
}

// Who has a kernel, in another library of the process; empty if none has.
std::string KernelElsewhere(const std::string& name, const std::string& key, const char* own) {
  std::vector<std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* names) {
        static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  for (const std::string& path : libraries) {
    if (path.empty()) continue;  // the program itself
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) continue;
    using Kernels = const char* (*)(const char*, const char*);
    const auto kernels = reinterpret_cast<Kernels>(dlsym(library, "aoti_operators_kernel"));
    const char* where = kernels == nullptr ? nullptr : kernels(name.c_str(), key.c_str());
    const std::string found = where == nullptr || where == own ? "" : where;
    dlclose(library);
    if (!found.empty()) return found;
  }
  return {};
}

std::string TwoKernels(const std::string& name, const std::string& first,
                       const std::string& second) {
  return "operator " + name + " has two kernels in this program: " + first + " and " + second +
         ". Link one of them, or give one of the operators another name";
}

}  // namespace

void aoti::operators::NoteProblem(const std::string& where, const std::string& problem) {
  Note(where + ": " + problem);
}

// What the operators' sources have for libtorch's handle.
class TorchLibraryOpaque {
 public:
  TorchLibraryHandle real = nullptr;  // null if libtorch refused it
  std::string name_space;
  std::string key;
  std::string where;
};

namespace {

AOTITorchError Made(AOTITorchError error, TorchLibraryHandle real, const char* ns, const char* key,
                    const char* file, std::uint32_t line, TorchLibraryHandle* result) {
  auto* library = new TorchLibraryOpaque;
  library->real = error == AOTI_TORCH_SUCCESS ? real : nullptr;
  library->name_space = ns;
  library->key = key;
  library->where =
      Target() + " (" + (file == nullptr ? "?" : file) + ":" + std::to_string(line) + ")";
  if (error != AOTI_TORCH_SUCCESS) Note(library->where + ": " + Reason());
  *result = library;
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError Defined(AOTITorchError error, TorchLibraryHandle self, const char* schema) {
  if (error != AOTI_TORCH_SUCCESS) {
    Note(self->where + ": \"" + schema + "\": " + Reason());
    return AOTI_TORCH_SUCCESS;
  }
  const aoti::internal::Schema parsed = aoti::internal::ParseSchema(schema);
  std::string name = Qualified(self->name_space, parsed.name);
  if (!parsed.overload.empty()) name += "." + parsed.overload;
  Operators()[name].schema = schema;
  Operators()[name].where = self->where;
  return AOTI_TORCH_SUCCESS;
}

}  // namespace

extern "C" {

AOTITorchError aoti_recorded_library_init_def(const char* ns, const char* file, uint32_t line,
                                              TorchLibraryHandle* result) {
  TorchLibraryHandle real = nullptr;
  const AOTITorchError error = aoti_torch_library_init_def(ns, file, line, &real);
  return Made(error, real, ns, "", file, line, result);
}

AOTITorchError aoti_recorded_library_init_fragment(const char* ns, const char* file, uint32_t line,
                                                   TorchLibraryHandle* result) {
  TorchLibraryHandle real = nullptr;
  const AOTITorchError error = aoti_torch_library_init_fragment(ns, file, line, &real);
  return Made(error, real, ns, "", file, line, result);
}

AOTITorchError aoti_recorded_library_init_impl(const char* ns, const char* k, const char* file,
                                               uint32_t line, TorchLibraryHandle* result) {
  TorchLibraryHandle real = nullptr;
  const AOTITorchError error = aoti_torch_library_init_impl(ns, k, file, line, &real);
  return Made(error, real, ns, k, file, line, result);
}

AOTITorchError aoti_recorded_library_def(TorchLibraryHandle self, const char* schema) {
  if (self->real == nullptr) return AOTI_TORCH_SUCCESS;
  return Defined(aoti_torch_library_def(self->real, schema), self, schema);
}

AOTITorchError aoti_recorded_library_def_with_tags(TorchLibraryHandle self, const char* schema,
                                                   const int32_t* tags, int32_t num_tags) {
  if (self->real == nullptr) return AOTI_TORCH_SUCCESS;
  return Defined(torch_library_def_with_tags(self->real, schema, tags, num_tags), self, schema);
}

AOTITorchError aoti_recorded_library_impl(TorchLibraryHandle self, const char* name, Boxed boxed,
                                          uint64_t version) {
  if (self->real == nullptr) return AOTI_TORCH_SUCCESS;
  const std::string full = Qualified(self->name_space, name);
  Kernel& kernel = Operators()[full].kernels[self->key];
  if (kernel.boxed != nullptr) {
    Note(TwoKernels(full, kernel.where, self->where));
    return AOTI_TORCH_SUCCESS;
  }
  kernel = {boxed, self->where};
  // aoti_operators_problems() says so, in both libraries.
  if (!KernelElsewhere(full, self->key, kernel.where.c_str()).empty()) return AOTI_TORCH_SUCCESS;
  if (torch_library_impl(self->real, name, boxed, version) != AOTI_TORCH_SUCCESS) {
    Note(self->where + ": " + full + ": " + Reason());
  }
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError aoti_recorded_library_set_python_module(TorchLibraryHandle self,
                                                       const char* pymodule, const char* context) {
  if (self->real == nullptr) return AOTI_TORCH_SUCCESS;
  return torch_library_set_python_module(self->real, pymodule, context);
}

AOTITorchError aoti_recorded_delete_library_object(TorchLibraryHandle self) {
  const AOTITorchError error =
      self->real == nullptr ? AOTI_TORCH_SUCCESS : aoti_torch_delete_library_object(self->real);
  delete self;
  return error;
}

void aoti_operators_begin(const char* target) { Target() = target; }

void aoti_operator_note_types(Boxed boxed, const char* types) { Types()[boxed] = types; }

// Who has this library's kernel of an operator for a dispatch key; null if there is none.
__attribute__((visibility("default"))) const char* aoti_operators_kernel(const char* name,
                                                                         const char* key) {
  const auto op = Operators().find(name);
  if (op == Operators().end()) return nullptr;
  const auto kernel = op->second.kernels.find(key);
  return kernel == op->second.kernels.end() ? nullptr : kernel->second.where.c_str();
}

// What is wrong with the library's operators, a line each; empty if nothing is.
// The text stays until the next call on this thread.
__attribute__((visibility("default"))) const char* aoti_operators_problems() {
  static thread_local std::string text;
  text.clear();
  for (const auto& [name, op] : Operators()) {
    for (const auto& [key, kernel] : op.kernels) {
      const std::string other = KernelElsewhere(name, key, kernel.where.c_str());
      if (!other.empty()) text += TwoKernels(name, kernel.where, other) + "\n";
      const auto types = Types().find(kernel.boxed);
      if (op.schema.empty() || types == Types().end()) continue;
      const std::string problem =
          aoti::internal::TypesProblem(aoti::internal::ParseSchema(op.schema), types->second);
      if (!problem.empty()) text += "operator " + name + " of " + op.where + ": " + problem + "\n";
    }
  }
  text += Problems();  // libtorch may have refused what another library has
  return text.c_str();
}

}  // extern "C"
