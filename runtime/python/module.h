// The part that all generated Python modules share. A generated module is one call of InitModule().

#ifndef AOTI_RUNTIME_PYTHON_MODULE_H_
#define AOTI_RUNTIME_PYTHON_MODULE_H_

#include <cstdint>
#include <span>

#include "aoti/program_spec.h"

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

struct ModuleSpec {
  const char* name;
  const char* doc;
  // Names of the inputs in Python (keywords have a `_` appended), in the spec's order.
  std::span<const char* const> input_names;
  std::span<const char* const> output_names;
  // What a call returns, the whole first; empty for a namedtuple of the outputs.
  std::span<const ResultNode> result = {};
};

// The body of PyInit_<name>(). Both arguments must have static lifetime.
_object* InitModule(const ModuleSpec& module, const ProgramSpec& spec);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_MODULE_H_
