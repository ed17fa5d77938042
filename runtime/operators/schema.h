// Reads the schema of an operator, such as "scale(Tensor x, float by=1.0) -> Tensor".

#ifndef AOTI_RUNTIME_OPERATORS_SCHEMA_H_
#define AOTI_RUNTIME_OPERATORS_SCHEMA_H_

#include <string>
#include <string_view>
#include <vector>

namespace aoti::internal {

struct SchemaArgument {
  std::string type;  // "Tensor", "float", "int[]", "Tensor?": without what it says of aliases
  std::string name;  // empty for a result without a name
};

struct Schema {
  std::string name;      // "scale", or with a namespace as it was given: "my::scale"
  std::string overload;  // empty if there is none
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaArgument> results;
};

// Torch checks schemas itself where a model is exported: of text that is no schema, the parts that
// can't be read are empty.
Schema ParseSchema(std::string_view text);

// How a C++ function differs from the schema of the operator that it is the kernel of; empty if it
// doesn't. types: "Tensor,float->Tensor", from signature.h.
std::string TypesProblem(const Schema& schema, std::string_view types);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_OPERATORS_SCHEMA_H_
