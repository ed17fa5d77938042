// Functions with variants: several programs, of which the arguments of a call choose one. Programs
// normally call the generated class of their model, which is a thin, typed layer over this.

#ifndef AOTI_VARIANTS_H_
#define AOTI_VARIANTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "aoti/cxx20.h"
#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"

namespace aoti {

// An argument of a call: a tensor, or a value that may choose the program.
struct Argument {
  enum class Kind : std::uint8_t { kNotGiven, kNone, kTensor, kBool, kInt, kFloat, kString };

  static constexpr Argument None() { return {.kind = Kind::kNone}; }
  static constexpr Argument Bool(bool value) { return {.kind = Kind::kBool, .integer = value}; }
  static constexpr Argument Int(std::int64_t value) {
    return {.kind = Kind::kInt, .integer = value};
  }
  static constexpr Argument Float(double value) { return {.kind = Kind::kFloat, .real = value}; }
  static constexpr Argument String(std::string_view value) {
    return {.kind = Kind::kString, .text = value};
  }

  Kind kind = Kind::kNotGiven;
  std::int64_t integer = 0;  // of a bool or an int
  double real = 0;
  std::string_view text = {};
  TensorView tensor = {};
};

// What a variant takes for one argument.
struct ArgumentRule {
  // The input of the variant's program that the argument becomes; -1: the argument has `value`.
  std::int32_t input = -1;
  Argument value = {};
};

struct ArgumentSpec {
  const char* name;
  const char* text;  // what calls may pass: "bool[batch, seq] | None"
  // What kind of value it may be beside None and a tensor; kNone: no other.
  Argument::Kind value_kind = Argument::Kind::kNone;
  Argument default_value = {};  // kNotGiven: a call must pass it
};

// A program of a function, and when it runs: if the arguments meet its rules, and it takes their
// dtypes, ranks and sizes.
struct VariantSpec {
  const char* name;
  std::int32_t program;                 // index in the programs of the model
  std::span<const ArgumentRule> rules;  // one for each argument of the function
};

// All of it is static data.
struct FunctionSpec {
  const char* name;  // starts every error message
  std::span<const ArgumentSpec> arguments;
  std::span<const VariantSpec> variants;  // the first that takes a call runs
};

// Which variant takes a call, and why those before it do not.
struct Explanation {
  struct Refusal {
    const char* variant;
    std::string reason;  // the first condition that the call does not meet
  };

  const char* variant = nullptr;  // null: none takes the call
  std::vector<Refusal> refusals;  // in the order of the variants, up to the one that takes it

  // For people, a line for each variant.
  std::string ToString() const;
};

// The outputs of a call, and the index of the variant that ran.
struct VariantOutputs {
  std::size_t variant;
  std::vector<Tensor> outputs;
};

// Runs the first variant that takes `arguments`, which are in the order of the function's.
// `programs`: all of the model, as Model::LoadMethods() returned them. The arguments are borrowed
// until it returns. Thread safe. Errors: kNoVariant, whose message says for each variant why it
// does not take the call; otherwise those of Model::Run().
Result<VariantOutputs> RunVariant(const FunctionSpec& function, std::span<const Model> programs,
                                  std::span<const Argument> arguments,
                                  const RunOptions& options = {});

// Says what RunVariant() would run. It reads dtypes, sizes and numbers, and no element of a tensor.
Explanation Explain(const FunctionSpec& function, std::span<const ProgramSpec* const> programs,
                    std::span<const Argument> arguments);

// The fields of a generated class's inputs as arguments, which borrow them.
template <typename T, std::size_t N>
Argument ToArgument(const TensorRef<T, N>& tensor) {
  if (!tensor.has_value()) return {};
  return {.kind = Argument::Kind::kTensor, .tensor = tensor.view()};
}
inline Argument ToArgument(bool value) { return Argument::Bool(value); }
inline Argument ToArgument(std::int64_t value) {
  return value == std::int64_t(kNotGiven) ? Argument() : Argument::Int(value);
}
inline Argument ToArgument(double value) {
  return ViewOfNumber(value).buffer_elements == TensorView::kMissing ? Argument()
                                                                     : Argument::Float(value);
}
inline Argument ToArgument(std::string_view value) {
  return value.data() == nullptr ? Argument() : Argument::String(value);
}
inline Argument ToArgument(std::monostate) { return Argument::None(); }
template <typename T>
Argument ToArgument(const std::optional<T>& value) {
  return value ? ToArgument(*value) : Argument::None();
}
template <typename... Ts>
Argument ToArgument(const std::variant<Ts...>& value) {
  return std::visit([](const auto& held) { return ToArgument(held); }, value);
}

}  // namespace aoti

#endif  // AOTI_VARIANTS_H_
