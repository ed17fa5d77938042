// Functions with variants, for rules and calls made at random: the first variant whose conditions a
// call meets takes it, and each one before it is refused with a reason.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aoti/program_spec.h"
#include "aoti/variants.h"
#include "runtime/tests/check.h"
#include "runtime/tests/random.h"

namespace aoti::testing {
namespace {

constexpr int kFunctions = 3'000;
constexpr int kCalls = 25;
constexpr const char* kNames[] = {"a", "b", "c", "d", "e"};
constexpr std::array<DType, 3> kDTypes = {DType::kFloat32, DType::kBFloat16, DType::kInt64};
constexpr std::array<std::string_view, 3> kTexts = {"mean", "max", "sum"};

bool IsEven(const std::int64_t* dims) { return dims[0] % 2 == 0; }
bool IsMultipleOfThree(const std::int64_t* dims) {
  return dims[0] % 3 == 0;
}

;

Argument RandomValue(Random& random) {
  switch (random.In(0, 3)) {
    case 0:
      return Argument::None();
    case 1:
      return Argument::Bool(random.OneIn(2));
    case 2:
      return Argument::Int(random.In(0, 2));
    default:
      return Argument::String(kTexts[random.Index(kTexts.size())]);
  }
}

// One program with a dim "n", its guard, and what its variant takes for each argument.
struct Variant {
  static constexpr std::int32_t kGuardDims[] = {0};

  std::array<DimSpec, 1> dims;
  std::vector<GuardSpec> guards;
  std::deque<std::vector<Extent>> sizes;
  std::vector<InputSpec> inputs;
  std::vector<ArgumentRule> rules;
  bool sized = false;  // whether a size gives the dim its value

  Variant(Random& random, std::size_t arguments) {
    const std::int64_t low = random.In(0, 3);
    dims[0] = {"n", low, low + random.In(0, 5)};
    for (std::size_t i = 0; i < arguments; ++i) {
      if (random.OneIn(2)) {
        rules.push_back({.value = RandomValue(random)});
        continue;
      }
      rules.push_back({.input = static_cast<std::int32_t>(inputs.size())});
      auto& extents = sizes.emplace_back();
      for (std::int64_t d = random.In(0, 2); d > 0; --d) {
        const bool varies = random.OneIn(2);
        sized |= varies;
        extents.push_back(varies ? Extent{1, 0, 0, "n"} : Extent{0, -1, random.In(1, 2), "static"});
      }
      inputs.push_back(
          {.name = kNames[i], .dtype = kDTypes[random.Index(kDTypes.size())], .sizes = extents});
    }
    if (sized && random.OneIn(2)) {
      guards.push_back(random.OneIn(2) ? GuardSpec{"n % 2 == 0", kGuardDims, &IsEven}
                                       : GuardSpec{"n % 3 == 0", kGuardDims, &IsMultipleOfThree});
    }
  }

  ProgramSpec Spec() const {
    return {.name = "m",
            .label = "//:m",
            .torch_version = "2.13.0",
            .weights_runfile = "",
            .dims = dims,
            .inputs = inputs,
            .outputs = {},
            .guards = guards,
            .weights = {},
            .packed = {},
            .variants = {}};
  }

  // From the declaration alone.
  bool Takes(std::span<const Argument> arguments) const {
    std::optional<std::int64_t> n;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Argument& given = arguments[i];
      if (rules[i].input < 0) {
        const Argument& wanted = rules[i].value;
        if (given.kind != wanted.kind || given.integer != wanted.integer ||
            given.text != wanted.text) {
          return false;
        }
        continue;
      }
      const auto input = static_cast<std::size_t>(rules[i].input);
      if (given.kind != Argument::Kind::kTensor) return false;
      if (given.tensor.dtype != inputs[input].dtype) return false;
      if (given.tensor.sizes.size() != sizes[input].size()) return false;
      for (std::size_t d = 0; d < sizes[input].size(); ++d) {
        const std::int64_t size = given.tensor.sizes[d];
        const Extent& extent = sizes[input][d];
        if (extent.dim < 0) {
          if (size != extent.offset) return false;
          continue;
        }
        if (n.value_or(size) != size) return false;
        n = size;
      }
    }
    if (!n) return true;
    if (*n < dims[0].min || *n > dims[0].max) return false;
    return guards.empty() || guards[0].holds(&*n);
  }
};

TEST(TheFirstVariantThatFitsTakesTheCall) {
  Random random(7);
  std::vector<double> memory(1'000);
  int taken = 0;
  int refused = 0;
  int later = 0;
  for (int f = 0; f < kFunctions; ++f) {
    const std::size_t count = static_cast<std::size_t>(random.In(1, 3));
    std::deque<Variant> variants;
    std::vector<VariantSpec> specs;
    std::vector<ProgramSpec> programs;
    std::vector<const ProgramSpec*> addresses;
    std::vector<ArgumentSpec> arguments;
    for (std::size_t i = 0; i < count; ++i) arguments.push_back({kNames[i], "anything"});
    for (std::size_t v = 0; v < static_cast<std::size_t>(random.In(1, 5)); ++v) {
      const Variant& variant = variants.emplace_back(random, count);
      specs.push_back({kNames[v], static_cast<std::int32_t>(v), variant.rules});
    }
    for (const Variant& variant : variants) programs.push_back(variant.Spec());
    for (const ProgramSpec& program : programs) addresses.push_back(&program);
    const FunctionSpec function = {"f", arguments, specs};

    for (int c = 0; c < kCalls; ++c) {
      // Near what one of the variants takes, or anything.
      const Variant& near = variants[random.Index(variants.size())];
      const std::int64_t n = random.In(0, 8);
      std::deque<std::vector<std::int64_t>> shapes;
      std::vector<Argument> call;
      for (std::size_t i = 0; i < count; ++i) {
        const ArgumentRule& rule = near.rules[i];
        if (rule.input < 0) {
          call.push_back(random.OneIn(8) ? RandomValue(random) : rule.value);
          continue;
        }
        const auto input = static_cast<std::size_t>(rule.input);
        auto& shape = shapes.emplace_back();
        for (const Extent& extent : near.sizes[input]) {
          shape.push_back(random.OneIn(12) ? random.In(0, 3)
                                           : (extent.dim < 0 ? extent.offset : n));
        }
        if (random.OneIn(16)) shape.push_back(1);
        const DType dtype =
            random.OneIn(12) ? kDTypes[random.Index(kDTypes.size())] : near.inputs[input].dtype;
        call.push_back(
            {.kind = Argument::Kind::kTensor,
             .tensor = {.data = memory.data(), .dtype = dtype, .sizes = shape, .strides = {}}});
      }
      std::size_t expected = 0;
      while (expected < variants.size() && !variants[expected].Takes(call)) ++expected;

      const Explanation explanation = Explain(function, addresses, call);
      CHECK_EQ(explanation.refusals.size(), expected);
      for (const auto& refusal : explanation.refusals) CHECK_TRUE(!refusal.reason.empty());
      const std::string variant = explanation.variant == nullptr ? "" : explanation.variant;
      CHECK_EQ(variant, expected < specs.size() ? std::string(specs[expected].name) : "");
      taken += expected < specs.size();
      later += expected > 0 && expected < specs.size();
      refused += expected == specs.size();
    }
  }
  // The test is worth little without many calls of each kind.
  CHECK_TRUE(taken > 10'000);
  CHECK_TRUE(later > 5'000);
  CHECK_TRUE(refused > 10'000);
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
