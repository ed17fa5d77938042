// The checks of a call, for tables and calls made at random: a call is accepted exactly when some
// values of the dims, in their ranges, give the sizes of all inputs and meet all guards. Its plan
// is compared too: calls of all kinds, plain and not, follow each other on one plan.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "aoti/tensor_view.h"
#include "runtime/core/check.h"
#include "runtime/core/layout.h"
#include "runtime/tests/check.h"
#include "runtime/tests/random.h"

namespace aoti::internal {
namespace {

using testing::Random;

constexpr int kPrograms = 20'000;
constexpr int kCalls = 12;

bool FirstIsEven(const std::int64_t* dims) { return dims[0] % 2 == 0; }
bool FirstDiffersFromLast(const std::int64_t* dims) {
  return dims[0] != dims[1];
}

;

// A size that other sizes give: (first * a + second * b + offset) / divisor.
struct Formula {
  std::int64_t first, second, offset, divisor;

  std::int64_t Size(const std::int64_t* dims) const {
    return (first * dims[0] + second * dims[1] + offset) / divisor;
  }
};

// Of one program; its tables call them by number.
std::array<Formula, 12> formulas;

template <std::size_t number>
std::int64_t Compute(const std::int64_t* dims) {
  return formulas[number].Size(dims);
}

using Function = std::int64_t (*)(const std::int64_t*);

template <std::size_t... numbers>
constexpr std::array<Function, sizeof...(numbers)> Functions(std::index_sequence<numbers...>) {
  return {&Compute<numbers>...};
}

constexpr auto kFunctions = Functions(std::make_index_sequence<formulas.size()>());

// The tables of a program with two free dims and one derived dim.
struct Tables {
  static constexpr std::int32_t kGuardDims[] = {0, 1};

  std::array<DimSpec, 3> dims;
  std::size_t computed = 0;  // how many formulas it has
  std::deque<std::vector<Extent>> sizes;
  std::vector<InputSpec> inputs;
  std::vector<GuardSpec> guards;
  bool alone[2] = {};  // whether a size gives the dim its value

  explicit Tables(Random& random) {
    const char* names[] = {"a", "b"};
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t low = random.In(0, 3);
      dims[d] = {names[d], low, low + random.In(0, 4)};
    }
    dims[2] = {"c", 0, 0, Extent{random.In(1, 3), 1, random.In(0, 2), "c"}};
    const std::int64_t count = random.In(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<Extent>& extents = sizes.emplace_back();
      if (i > 0 && random.OneIn(3)) {
        // Almost the shape of the input before.
        extents = sizes[static_cast<std::size_t>(i - 1)];
        if (!extents.empty()) extents.back() = AlmostThe(extents.back(), random);
      } else {
        const std::int64_t rank = random.In(0, 3);
        for (std::int64_t d = 0; d < rank; ++d) extents.push_back(RandomExtent(random));
      }
      const char* input_names[] = {"u", "v", "w", "x"};
      inputs.push_back({.name = input_names[i], .dtype = DType::kFloat32, .sizes = extents});
    }
    if (random.OneIn(4)) guards.push_back({"a % 2 == 0", {kGuardDims, 1}, &FirstIsEven});
    if (random.OneIn(4)) guards.push_back({"a != b", kGuardDims, &FirstDiffersFromLast});
  }

  // Whether the build would make such tables: formulas and guards only have dims whose values are
  // known.
  bool Valid() const { return (computed == 0 && guards.empty()) || (alone[0] && alone[1]); }

  Extent RandomExtent(Random& random) {
    if (random.OneIn(4)) return {0, -1, random.In(0, 3), "static"};
    if (random.OneIn(3)) {
      formulas[computed] = {random.In(0, 3), random.In(1, 2), random.In(0, 2), random.In(1, 3)};
      return {0, -1, 0, "formula", kFunctions[computed++], kGuardDims};
    }
    const auto dim = static_cast<std::int32_t>(random.In(0, 1));
    alone[dim] = true;
    return {random.In(1, 3), dim, random.In(0, 2), "linear"};
  }

  Extent AlmostThe(Extent extent, Random& random) {
    if (extent.compute == nullptr) {
      extent.offset += random.In(0, 1);
      return extent;
    }
    formulas[computed] = {random.In(0, 3), random.In(1, 2), random.In(0, 2), random.In(1, 3)};
    extent.compute = kFunctions[computed++];
    return extent;
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
};

std::int64_t SizeOf(const Extent& extent, const std::array<std::int64_t, 3>& dims) {
  if (extent.compute != nullptr) return extent.compute(dims.data());
  if (extent.dim < 0) return extent.offset;
  return extent.offset + extent.scale * dims[static_cast<std::size_t>(extent.dim)];
}

using Shapes = std::vector<std::vector<std::int64_t>>;

// Tries all values of the dims; a dim that no size has is left out of the comparison.
bool Accepts(const Tables& tables, const Shapes& shapes) {
  for (std::int64_t a = tables.dims[0].min; a <= tables.dims[0].max; ++a) {
    for (std::int64_t b = tables.dims[1].min; b <= tables.dims[1].max; ++b) {
      const std::array<std::int64_t, 3> dims = {a, b, 0};
      bool fits = true;
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        for (std::size_t d = 0; d < shapes[i].size(); ++d) {
          fits &= shapes[i][d] == SizeOf(tables.sizes[i][d], dims);
        }
      }
      for (const GuardSpec& guard : tables.guards) fits &= guard.holds(dims.data());
      if (fits) return true;
    }
  }
  return false;
}

// Strides for a call: none, those of a contiguous tensor, or these with some that are changed.
std::vector<std::int64_t> RandomStrides(Random& random, const std::vector<std::int64_t>& shape) {
  if (random.OneIn(2)) return {};
  std::vector<std::int64_t> strides(shape.size());
  ContiguousStrides(shape, strides.data());
  for (std::int64_t& stride : strides) {
    if (random.OneIn(8)) stride += random.In(0, 2);
  }
  return strides;
}

// The plan of a call is for contiguous tensors, and has the values of the dims.
void CheckPlan(const Tables& tables, std::span<const TensorView> views, const CallPlan& plan) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto& shape = views[i].sizes;
    std::vector<std::int64_t> contiguous(shape.size());
    ContiguousStrides(shape, contiguous.data());
    const InputPlan& input = plan.inputs[i];
    CHECK_TRUE(std::ranges::equal(input.strides, contiguous));
    CHECK_EQ(input.numel, *CheckedNumel(shape, sizeof(float)));
    const bool copied = !views[i].strides.empty() && input.numel > 0 &&
                        !SameLayout(shape, views[i].strides.data(), contiguous.data());
    CHECK_EQ(input.copy, copied);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Extent& extent = tables.sizes[i][d];
      if (extent.dim < 0) continue;
      const std::int64_t value = plan.dims[static_cast<std::size_t>(extent.dim)];
      CHECK_EQ(shape[d], extent.scale * value + extent.offset);
    }
  }
}

TEST(AcceptsExactlyWhatIsDeclared) {
  Random random(1);
  std::vector<float> memory(20'000);
  int accepted = 0;
  int refused = 0;
  int computed = 0;
  for (int program = 0; program < kPrograms; ++program) {
    const Tables tables(random);
    if (!tables.Valid()) continue;
    const ProgramSpec spec = tables.Spec();
    CallPlan plan;  // is used again: calls must not depend on the calls before them
    for (int call = 0; call < kCalls; ++call) {
      // Sizes near the ends of the ranges, inside and outside, of which some are changed.
      const std::array<std::int64_t, 3> dims = {random.In(0, 6), random.In(0, 6), 0};
      Shapes shapes;
      std::vector<TensorView> views;
      for (const auto& extents : tables.sizes) {
        auto& shape = shapes.emplace_back();
        for (const Extent& extent : extents) {
          shape.push_back(SizeOf(extent, dims) + (random.OneIn(16) ? random.In(-1, 2) : 0));
        }
      }
      Shapes strides;
      for (const auto& shape : shapes) strides.push_back(RandomStrides(random, shape));
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        views.push_back({.data = memory.data(),
                         .dtype = DType::kFloat32,
                         .sizes = shapes[i],
                         .strides = strides[i]});
      }
      const bool expected = Accepts(tables, shapes);
      const auto error = CheckCall(spec, views, /*check_values=*/false, plan);
      CHECK_EQ(!error.has_value(), expected);
      if (expected) CheckPlan(tables, views, plan);
      accepted += expected;
      refused += !expected;
      computed += expected && tables.computed > 0;
    }
  }
  // The test is worth little without many calls of each kind.
  CHECK_TRUE(accepted > 10'000);
  CHECK_TRUE(refused > 10'000);
  CHECK_TRUE(computed > 1'000);
}

}  // namespace
}  // namespace aoti::internal

int main() { return aoti::testing::RunAllTests(); }
