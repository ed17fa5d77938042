// Registers operators with libtorch, and notes what is wrong with them, for the step that loads the
// library: PyTorch's own functions end the process, or say nothing.

#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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
  library->where = std::string(file == nullptr ? "?" : file) + ":" + std::to_string(line);
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
    Note("operator " + full + " has two kernels for " + self->key + ": " + kernel.where + " and " +
         self->where);
    return AOTI_TORCH_SUCCESS;
  }
  kernel = {boxed, self->where};
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

void aoti_operator_note_types(Boxed boxed, const char* types) { Types()[boxed] = types; }

// What is wrong with the library's operators, a line each; empty if nothing is.
__attribute__((visibility("default"))) const char* aoti_operators_problems() {
  static auto* const text = new std::string;
  *text = Problems();
  for (const auto& [name, op] : Operators()) {
    for (const auto& [key, kernel] : op.kernels) {
      const auto types = Types().find(kernel.boxed);
      if (op.schema.empty() || types == Types().end()) continue;
      const std::string problem =
          aoti::internal::TypesProblem(aoti::internal::ParseSchema(op.schema), types->second);
      if (!problem.empty()) *text += "operator " + name + " (" + op.where + "): " + problem + "\n";
    }
  }
  return text->c_str();
}

}  // extern "C"
