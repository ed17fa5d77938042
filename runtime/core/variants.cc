#include "aoti/variants.h"

#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/loaded.h"
#include "runtime/core/text.h"

namespace aoti {
namespace {

using internal::CallPlan;
using internal::StrCat;
using Kind = Argument::Kind;

// What the checks of sizes write; reused, so that choosing a variant does not allocate.
struct Scratch {
  CallPlan plan;
  std::vector<TensorView> views;
};

bool IsEqual(const Argument& a, const Argument& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kBool:
    case Kind::kInt:
      return a.integer == b.integer;
    case Kind::kFloat:
      return a.real == b.real;
    case Kind::kString:
      return a.text == b.text;
    default:
      return a.kind == Kind::kNone;
  }
}

// As Python writes it.
std::string ValueText(const Argument& argument) {
  switch (argument.kind) {
    case Kind::kNotGiven:
      return "not given";
    case Kind::kNone:
      return "None";
    case Kind::kTensor:
      return "a tensor";
    case Kind::kBool:
      return argument.integer != 0 ? "True" : "False";
    case Kind::kInt:
      return StrCat(argument.integer);
    case Kind::kFloat:
      return StrCat(argument.real);
    case Kind::kString:
      return StrCat("\"", argument.text, "\"");
  }
  return "";
}

// Whether the argument can be this input at all.
bool CanBe(const Argument& argument, const InputSpec& input) {
  if (!input.number) return argument.kind == Kind::kTensor;
  return argument.kind == (input.dtype == DType::kInt64 ? Kind::kInt : Kind::kFloat);
}

// The first argument that does not meet the rule of a variant; their number if all do, and then
// `views` has the inputs of its program.
std::size_t FirstUnmet(const VariantSpec& variant, const ProgramSpec& program,
                       std::span<const Argument> arguments, std::vector<TensorView>& views) {
  views.resize(program.inputs.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentRule& rule = variant.rules[i];
    const Argument& argument = arguments[i];
    if (rule.input < 0) {
      if (!IsEqual(argument, rule.value)) return i;
      continue;
    }
    const auto input = static_cast<std::size_t>(rule.input);
    if (!CanBe(argument, program.inputs[input])) return i;
    if (argument.kind == Kind::kTensor) {
      views[input] = argument.tensor;
    } else {
      views[input] = argument.kind == Kind::kInt ? ViewOfNumber(argument.integer)
                                                 : ViewOfNumber(argument.real);
    }
  }
  return arguments.size();
}

// Why a variant does not take a call.
std::string Reason(const FunctionSpec& function, const VariantSpec& variant,
                   const ProgramSpec& program, std::span<const Argument> arguments) {
  Scratch scratch;
  const std::size_t unmet = FirstUnmet(variant, program, arguments, scratch.views);
  if (unmet == arguments.size()) {
    const auto error = internal::CheckSizes(program, scratch.views, scratch.plan);
    if (!error) return "";
    // It begins with the program's name, which the variant's stands for.
    return error->message().substr(std::string_view(program.name).size() + 2);
  }
  const ArgumentRule& rule = variant.rules[unmet];
  const std::string expected =
      rule.input < 0 ? ValueText(rule.value)
                     : internal::TypeText(program.inputs[static_cast<std::size_t>(rule.input)]);
  return StrCat("input \"", function.arguments[unmet].name, "\" is ", ValueText(arguments[unmet]),
                ", must be ", expected);
}

}  // namespace

std::string Explanation::ToString() const {
  std::string text = variant == nullptr ? "no variant takes the call" : StrCat(variant, " runs");
  for (const Refusal& refusal : refusals) {
    text += StrCat("\n  not ", refusal.variant, ": ", refusal.reason);
  }
  return text;
}

Explanation Explain(const FunctionSpec& function, std::span<const ProgramSpec* const> programs,
                    std::span<const Argument> arguments) {
  Explanation explanation;
  for (const VariantSpec& variant : function.variants) {
    const ProgramSpec& program = *programs[static_cast<std::size_t>(variant.program)];
    std::string reason = Reason(function, variant, program, arguments);
    if (reason.empty()) {
      explanation.variant = variant.name;
      break;
    }
    explanation.refusals.push_back({variant.name, std::move(reason)});
  }
  return explanation;
}

Result<VariantOutputs> RunVariant(const FunctionSpec& function, std::span<const Model> programs,
                                  std::span<const Argument> arguments, const RunOptions& options) {
  return internal::WithoutExceptions<VariantOutputs>(
      programs.front().spec(), [&]() -> Result<VariantOutputs> {
        thread_local Scratch scratch;
        for (std::size_t i = 0; i < function.variants.size(); ++i) {
          const VariantSpec& variant = function.variants[i];
          const Model& program = programs[static_cast<std::size_t>(variant.program)];
          if (FirstUnmet(variant, program.spec(), arguments, scratch.views) < arguments.size() ||
              !internal::FitsSizes(program.spec(), scratch.views, scratch.plan)) {
            continue;
          }
          auto outputs = program.Run(scratch.views, options);
          if (!outputs.ok()) return std::move(outputs).error();
          return VariantOutputs{i, *std::move(outputs)};
        }
        std::vector<const ProgramSpec*> specs;
        for (const Model& program : programs) specs.push_back(&program.spec());
        return Error(ErrorCode::kNoVariant,
                     StrCat(function.name, ": ", Explain(function, specs, arguments).ToString()));
      });
}

}  // namespace aoti
