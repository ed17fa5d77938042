// The part that all generated Python modules share. A generated module is one call of InitModule().

#ifndef AOTI_RUNTIME_PYTHON_MODULE_H_
#define AOTI_RUNTIME_PYTHON_MODULE_H_

#include <cstdint>
#include <span>

#include "aoti/program_spec.h"

namespace aoti {
struct FunctionSpec;
}

struct _object;  // PyObject; without Python's headers, generated files compile faster

namespace aoti::python {

enum class ResultKind : std::uint8_t {
  kTensor,
  kNumber,
  // Constants.
  kNone,
  kBool,
  kInt,
  kFloat,
  kStr,
  // Containers.
  kDict,
  kList,
  kTuple,
  kObject,
};

// A part of what a call returns. The items of a container follow it, each with its own items.
struct ResultNode {
  bool IsContainer() const { return kind >= ResultKind::kDict; }

  ResultKind kind;
  // Of a tensor or number: which output it is. Of a container: how many items it has.
  std::int32_t number = 0;
  // Of a constant: its value as Python writes it. Of an object: its class's name.
  const char* text = "";
  // The key in the dict, or the field in the object, that it is an item of.
  const char* key = nullptr;
  bool int_key = false;
};

// A program of a module, and its names in Python.
struct MethodSpec {
  // Of the loaded model's method. Null for the only program of a module, whose models are called
  // themselves.
  const char* name;
  const char* doc = "";
  // Names of the inputs in Python (keywords have a `_` appended), in the spec's order.
  std::span<const char* const> input_names;
  std::span<const char* const> output_names;
  // As forward() has the inputs ("cache[0]"); empty if none is a part of a structure.
  std::span<const char* const> input_paths = {};
  // What a call returns, the whole first; empty for a namedtuple of the outputs.
  std::span<const ResultNode> result = {};
  // The name of the class of that namedtuple.
  const char* outputs_class = "Outputs";
  // The variant's name, of a program that its function calls.
  const char* variant = nullptr;
};

// A function with variants, and its names in Python.
struct FunctionNames {
  const char* name;     // of the loaded model's method
  const char* explain;  // of its method that explains
  const char* doc;
  // Of the arguments (keywords have a `_` appended).
  std::span<const char* const> input_names;
  std::span<const char* const> input_paths;
  // Whether the module has its signature: then a model has no other function.
  bool single;
};

// The module of a model with one program. Its fields are those of the program's MethodSpec.
struct ModuleSpec {
  const char* name;
  const char* doc;
  std::span<const char* const> input_names;
  std::span<const char* const> output_names;
  std::span<const char* const> input_paths = {};
  std::span<const ResultNode> result = {};
};

// The module of a model with methods.
struct MethodsModuleSpec {
  const char* name;
  const char* label;  // of the Bazel target
  const char* doc;
  // In the order of the programs. Results of several methods may have classes of the same name:
  // these have the same fields, and become one class.
  std::span<const MethodSpec> methods;
  std::span<const FunctionNames> functions = {};  // those with variants
};

// The body of PyInit_<name>(). All arguments must have static lifetime.
_object* InitModule(const ModuleSpec& module, const ProgramSpec& spec);
_object* InitModule(const MethodsModuleSpec& module, std::span<const ProgramSpec* const> specs,
                    std::span<const FunctionSpec* const> functions = {});

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_MODULE_H_
