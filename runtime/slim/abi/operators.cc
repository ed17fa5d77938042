#include "runtime/slim/abi/operators.h"

#include <cstddef>
#include <cstring>
#include <deque>
#include <utility>

#include "runtime/slim/tensor/error.h"

namespace aoti::slim {
namespace {

// Registrations run before main(), in any order: the table exists from the first one on, and stays.
std::deque<ProgramOperator>& Table() {
  static auto* const table = new std::deque<ProgramOperator>;
  return *table;
}

// The types of the C++ functions that kernels were made of.
std::deque<std::pair<OperatorKernel, std::string>>& Types() {
  static auto* const types = new std::deque<std::pair<OperatorKernel, std::string>>;
  return *types;
}

// The label of a target; empty where no `torch_custom_ops` compiled the source.
std::string& Target() {
  static auto* const target = new std::string;
  return *target;
}

ProgramOperator& Entry(std::string_view name_space, std::string_view name,
                       std::string_view overload) {
  std::string whole(name);
  if (name.find("::") == std::string_view::npos) whole = StrCat(name_space, "::", name);
  for (ProgramOperator& op : Table()) {
    if (op.name == whole && op.overload == overload) return op;
  }
  ProgramOperator& op = Table().emplace_back();
  op.name = std::move(whole);
  op.overload = overload;
  return op;
}

std::string FullName(std::string_view name, std::string_view overload) {
  return overload.empty() ? std::string(name) : StrCat(name, ".", overload);
}

void NoteTwice(ProgramOperator& op, const char* what, const std::string& first,
               const std::string& second) {
  op.problem = StrCat("operator ", FullName(op.name, op.overload), " has two ", what,
                      " in this program: ", first, " and ", second,
                      ". Link one of them, or give one of the operators another name");
}

}  // namespace

std::string PlaceOfOperator(const char* file, std::uint32_t line) {
  const std::string place = StrCat(file == nullptr ? "?" : file, ":", line);
  return Target().empty() ? place : StrCat(Target(), " (", place, ")");
}

void DeclareOperator(std::string_view name_space, std::string_view text, std::string where) {
  internal::Schema schema = internal::ParseSchema(text);
  ProgramOperator& op = Entry(name_space, schema.name, schema.overload);
  if (!op.declared.empty()) return NoteTwice(op, "schemas", op.declared, where);
  op.schema = std::move(schema);
  op.declared = std::move(where);
}

void ImplementOperator(std::string_view name_space, std::string_view name, OperatorKernel kernel,
                       std::string where) {
  const internal::Schema parsed = internal::ParseSchema(name);
  ProgramOperator& op = Entry(name_space, parsed.name, parsed.overload);
  if (op.kernel != nullptr) return NoteTwice(op, "kernels", op.implemented, where);
  op.kernel = kernel;
  op.implemented = std::move(where);
}

const ProgramOperator* FindOperator(const char* name, const char* overload) {
  for (const ProgramOperator& op : Table()) {
    if (op.name == name && op.overload == overload) return &op;
  }
  return nullptr;
}

namespace {

std::string Problem(std::string_view full) {
  const internal::Schema parsed = internal::ParseSchema(full);
  const ProgramOperator* op = FindOperator(parsed.name.c_str(), parsed.overload.c_str());
  if (op == nullptr) {
    return StrCat("operator ", full,
                  " is not in this program. Give the torch_custom_ops target that has it to "
                  "custom_ops of the model");
  }
  if (!op->problem.empty()) return op->problem;
  if (op->declared.empty()) {
    return StrCat("operator ", full, " of ", op->implemented,
                  " has a kernel and no schema: declare it with m.def() in STABLE_TORCH_LIBRARY");
  }
  if (op->kernel == nullptr) {
    return StrCat("operator ", full, " of ", op->declared,
                  " has a schema and no kernel for the CPU: add one with m.impl() in "
                  "STABLE_TORCH_LIBRARY_IMPL(..., CPU, m)");
  }
  for (const auto& [kernel, types] : Types()) {
    if (kernel != op->kernel) continue;
    const std::string problem = internal::TypesProblem(op->schema, types);
    if (!problem.empty()) return StrCat("operator ", full, " of ", op->declared, ": ", problem);
  }
  return {};
}

}  // namespace
}  // namespace aoti::slim

extern "C" void aoti_operators_begin(const char* target) { aoti::slim::Target() = target; }

extern "C" void aoti_operator_note_types(aoti::slim::OperatorKernel boxed, const char* types) {
  aoti::slim::Types().emplace_back(boxed, types);
}

extern "C" const char* aoti_slim_operator_problem(const char* name) {
  static thread_local std::string text;
  text = aoti::slim::Problem(name);
  return text.empty() ? nullptr : text.c_str();
}
