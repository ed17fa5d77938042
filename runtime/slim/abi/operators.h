// The operators that a program brings itself: those of its `torch_custom_ops`, which register
// themselves before main(), through the functions that PyTorch's stable C++ API calls.
//
// aoti_torch_call_dispatcher() looks for an operator among them if it is none of slim's own. What
// is wrong with a registration can't be reported before main(): it is reported when a model that
// calls the operator is loaded.

#ifndef AOTI_RUNTIME_SLIM_ABI_OPERATORS_H_
#define AOTI_RUNTIME_SLIM_ABI_OPERATORS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/operators/schema.h"
#include "runtime/slim/abi/declarations.h"

namespace aoti::slim {

// The arguments are on the stack in the order of the schema, and the kernel owns them; the results,
// which the caller owns, replace them. It may throw.
using OperatorKernel = void (*)(StableIValue* stack, std::uint64_t arguments,
                                std::uint64_t results);

struct ProgramOperator {
  std::string name;      // "my::scale"
  std::string overload;  // empty for most
  internal::Schema schema;
  std::string declared;     // who has its schema: "//ops:scale (ops/scale.cc:12)"; empty if nobody
  std::string implemented;  // the same for its kernel
  OperatorKernel kernel = nullptr;
  std::string problem;  // why it can't be called; empty if it can
};

// The target whose operators are being registered, with a place in its sources: for errors.
std::string PlaceOfOperator(const char* file, std::uint32_t line);

// Adds an operator's schema. name_space: "my". where: what PlaceOfOperator() returned.
void DeclareOperator(std::string_view name_space, std::string_view schema, std::string where);

// Adds an operator's kernel. name: "scale" or "scale.overload", with or without the namespace.
void ImplementOperator(std::string_view name_space, std::string_view name, OperatorKernel kernel,
                       std::string where);

// Null if the program has no such operator. It does not allocate.
const ProgramOperator* FindOperator(const char* name, const char* overload);

}  // namespace aoti::slim

// Names the target of the operators that register themselves until the next call, and what
// TORCH_BOX says of a kernel's C++ function: see runtime/operators/signature.h.
extern "C" void aoti_operators_begin(const char* target);
extern "C" void aoti_operator_note_types(aoti::slim::OperatorKernel boxed, const char* types);

// Why a program that calls the operator ("my::scale", "my::scale.overload") can't run; null if it
// can. The text stays until the next call on this thread.
extern "C" const char* aoti_slim_operator_problem(const char* name);

#endif  // AOTI_RUNTIME_SLIM_ABI_OPERATORS_H_
