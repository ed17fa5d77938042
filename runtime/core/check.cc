#include "runtime/core/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "runtime/core/dtype_table.h"
#include "runtime/core/layout.h"
#include "runtime/core/text.h"
#include "runtime/core/values.h"

namespace aoti::internal {
namespace {

using Ints = std::span<const std::int64_t>;

std::string RangeText(std::int64_t low, std::int64_t high) {
  if (high == kUnbounded) return StrCat("at least ", low);
  return low == high ? StrCat(low) : StrCat("in ", low, "..", high);
}

}  // namespace

const std::int64_t* CallPlan::GivenStrides(const TensorView& given) {
  if (!given.strides.empty()) return given.strides.data();
  given_strides_.resize(given.sizes.size());
  ContiguousStrides(given.sizes, given_strides_.data());
  return given_strides_.data();
}

class CallChecker {
 public:
  // quiet: errors have no text.
  CallChecker(const ProgramSpec& spec, std::span<const TensorView> inputs, CallPlan& plan,
              bool quiet = false)
      : spec_(spec), inputs_(inputs), plan_(plan), quiet_(quiet) {}

  std::optional<Error> Run(bool check_values) {
    if (inputs_.size() != spec_.inputs.size()) return WrongCount();
    if (!plan_.plain_.Accept(spec_, inputs_, plan_.dims, plan_.inputs)) {
      if (auto error = CheckShapes()) return error;
    }
    if (inputs_.size() > 1 && plan_.plain_.writes()) {
      if (auto error = CheckOverlaps()) return error;
    }
    if (check_values) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (auto error = CheckValues(i)) return error;
      }
    }
    return std::nullopt;
  }

  // What chooses a variant.
  std::optional<Error> CheckSizesAndNumbers() {
    any_device_ = true;
    if (auto error = CheckAllSizes()) return error;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!spec_.inputs[i].number) continue;
      if (auto error = CheckValues(i)) return error;
    }
    return std::nullopt;
  }

 private:
  // Dtypes, ranks and sizes, and what follows from them.
  std::optional<Error> CheckAllSizes() {
    plan_.plain_.Forget();
    plan_.dims.assign(spec_.dims.size(), 0);
    plan_.origins_.assign(spec_.dims.size(), {});
    plan_.inputs.resize(inputs_.size());
    // All sizes first: the strides of an input may depend on a dim whose value comes from a later
    // input.
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (auto error = CheckType(i)) return error;
      if (auto error = CheckSizes(i)) return error;
      if (spec_.inputs[i].value_dim >= 0) {
        if (auto error = LearnValue(i)) return error;
      }
    }
    SolveDerivedDims(spec_.dims, plan_.dims.data());
    if (has_computed_) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (auto error = CheckComputed(i)) return error;
      }
    }
    return CheckGuards();
  }

  // Everything but the values and whether inputs overlap.
  std::optional<Error> CheckShapes() {
    if (auto error = CheckAllSizes()) return error;
    std::size_t ranks = 0;
    for (const TensorView& given : inputs_) ranks += given.sizes.size();
    plan_.strides_.resize(ranks);
    std::int64_t* strides = plan_.strides_.data();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (auto error = CheckMemory(i)) return error;
      if (auto error = CheckLayout(i, strides)) return error;
      strides += inputs_[i].sizes.size();
    }
    return std::nullopt;
  }

  // Whether it is on the CPU or on the model's device. Numbers are read here, on the CPU.
  bool IsWithinReach(const InputSpec& expected, const TensorView& given) const {
    return given.cuda_device == TensorView::kCpu ||
           (given.cuda_device == plan_.cuda_device && !expected.number);
  }

  // Out of the way of the checks that pass.
  template <typename... Parts>
  [[gnu::cold, gnu::noinline]] Error Fail(ErrorCode code, std::size_t i,
                                          const Parts&... parts) const {
    if (quiet_) return {code, std::string()};
    return {code, StrCat(spec_.name, ": input \"", spec_.inputs[i].name, "\": ", parts...)};
  }

  Error WrongCount() const {
    std::string names;
    for (const InputSpec& input : spec_.inputs) {
      if (!names.empty()) names += ", ";
      names += input.name;
    }
    return {ErrorCode::kWrongInputCount,
            StrCat(spec_.name, ": got ", inputs_.size(), " inputs, must be ", spec_.inputs.size(),
                   " (", names, ")")};
  }

  std::optional<Error> CheckType(std::size_t i) const {
    const InputSpec& expected = spec_.inputs[i];
    const TensorView& given = inputs_[i];
    if (given.buffer_elements == TensorView::kMissing) {
      return Fail(ErrorCode::kMissingInput, i, "not given, must be ", TypeText(expected));
    }
    if (!any_device_ && !IsWithinReach(expected, given)) {
      const bool only_cpu = plan_.cuda_device == TensorView::kCpu || expected.number;
      return Fail(ErrorCode::kWrongDevice, i, "device is cuda:", given.cuda_device, ", must be cpu",
                  only_cpu ? "" : StrCat(" or cuda:", plan_.cuda_device));
    }
    if (given.dtype != expected.dtype) {
      return Fail(ErrorCode::kWrongDType, i, "dtype is ", given.dtype, ", must be ",
                  expected.dtype);
    }
    if (given.sizes.size() != expected.sizes.size()) {
      if (quiet_) return Fail(ErrorCode::kWrongRank, i);
      return Fail(ErrorCode::kWrongRank, i, "rank is ", given.sizes.size(), " (shape ",
                  ShapeText(given.sizes), "), must be ", expected.sizes.size(), " (",
                  ShapeText(expected.sizes), ")");
    }
    if (!given.strides.empty() && given.strides.size() != given.sizes.size()) {
      return Fail(ErrorCode::kWrongStrides, i, "has ", given.strides.size(), " strides for ",
                  given.sizes.size(), " dimensions");
    }
    return std::nullopt;
  }

  std::optional<Error> CheckSizes(std::size_t i) {
    const std::span<const Extent> expected = spec_.inputs[i].sizes;
    const std::int64_t* const sizes = inputs_[i].sizes.data();
    for (std::size_t d = 0; d < expected.size(); ++d) {
      const Extent& extent = expected[d];
      if (extent.dim >= 0) {
        if (IsKnown(extent, sizes[d])) continue;
        if (auto error = SolveDim(i, d, extent, sizes[d])) return error;
      } else if (extent.compute != nullptr) {
        has_computed_ = true;
      } else if (sizes[d] != extent.offset) {
        return Fail(ErrorCode::kWrongSize, i, "dim ", d, " is ", sizes[d], ", must be ",
                    extent.offset);
      }
    }
    return std::nullopt;
  }

  // Whether this is the size that an earlier one gives: the commonest case, without a division.
  bool IsKnown(const Extent& extent, std::int64_t size) const {
    const auto dim = static_cast<std::size_t>(extent.dim);
    return plan_.origins_[dim].input >= 0 && SizeFor(extent, plan_.dims[dim]) == size;
  }

  // Compares the sizes that are sums or quotients with the values of their dims.
  std::optional<Error> CheckComputed(std::size_t i) const {
    const std::span<const Extent> expected = spec_.inputs[i].sizes;
    for (std::size_t d = 0; d < expected.size(); ++d) {
      const Extent& extent = expected[d];
      const std::int64_t size = inputs_[i].sizes[d];
      if (IsComputed(extent, size)) continue;
      const std::int64_t wanted = extent.compute(plan_.dims.data());
      if (quiet_) return Fail(ErrorCode::kSizeMismatch, i);
      std::string values;
      for (const std::int32_t dim : extent.dims) {
        values += StrCat(values.empty() ? "" : ", ", DimText(dim));
      }
      return Fail(ErrorCode::kSizeMismatch, i, "dim ", d, " (", extent.text, ") is ", size,
                  ", must be ",
                  wanted == kUnbounded ? std::string("more than 64 bits hold") : StrCat(wanted),
                  ", because ", values);
    }
    return std::nullopt;
  }

  // Whether a size is what follows from the dims; a size that is not computed is.
  bool IsComputed(const Extent& extent, std::int64_t size) const {
    return extent.compute == nullptr ||
           (size == extent.compute(plan_.dims.data()) && size != kUnbounded);
  }

  // "past is 7 (input \"cache\" dim 1)"
  std::string DimText(std::int32_t dim) const {
    const auto index = static_cast<std::size_t>(dim);
    return StrCat(spec_.dims[index].name, " is ", plan_.dims[index], " (", OriginText(dim), ")");
  }

  // Sets the value of the dim that one size gives, or compares it with the value that is known.
  std::optional<Error> SolveDim(std::size_t i, std::size_t d, const Extent& extent,
                                std::int64_t size) {
    const DimSpec& dim = spec_.dims[static_cast<std::size_t>(extent.dim)];
    const std::int64_t low = SizeFor(extent, dim.min);
    const std::int64_t high = SizeFor(extent, dim.max);
    std::int64_t scaled;
    if (size < low || size > high || __builtin_sub_overflow(size, extent.offset, &scaled)) {
      if (quiet_) return Fail(ErrorCode::kSizeOutOfRange, i);
      return Fail(ErrorCode::kSizeOutOfRange, i, "dim ", d, " (", extent.text, ") is ", size,
                  ", must be ", RangeText(low, high));
    }
    if (extent.scale != 1 && scaled % extent.scale != 0) {
      if (extent.offset == 0) {
        return Fail(ErrorCode::kSizeMismatch, i, "dim ", d, " (", extent.text, ") is ", size,
                    ", must be a multiple of ", extent.scale);
      }
      return Fail(ErrorCode::kSizeMismatch, i, "dim ", d, " (", extent.text, ") is ", size,
                  ", must be ", Formula(extent), " for an integer ", dim.name);
    }
    const std::int64_t value = extent.scale == 1 ? scaled : scaled / extent.scale;
    auto& origin = plan_.origins_[static_cast<std::size_t>(extent.dim)];
    auto& known = plan_.dims[static_cast<std::size_t>(extent.dim)];
    if (origin.input < 0) {
      known = value;
      origin = {static_cast<std::int32_t>(i), static_cast<std::int32_t>(d)};
    } else if (known != value) {
      const auto other = static_cast<std::size_t>(origin.input);
      return Fail(ErrorCode::kSizeMismatch, i, "dim ", d, " (", extent.text, ") is ", size,
                  ", but input \"", spec_.inputs[other].name, "\" dim ", origin.dim, " says ",
                  dim.name, " = ", known);
    }
    return std::nullopt;
  }

  // For an input that is a number: checks its value and takes it as the value of the dim.
  std::optional<Error> LearnValue(std::size_t i) {
    const std::int32_t index = spec_.inputs[i].value_dim;
    if (auto error = CheckMemory(i)) return error;
    const DimSpec& dim = spec_.dims[static_cast<std::size_t>(index)];
    std::int64_t value;
    std::memcpy(&value, inputs_[i].data, sizeof(value));
    if (value < dim.min || value > dim.max) {
      if (quiet_) return Fail(ErrorCode::kValueOutOfRange, i);
      return Fail(ErrorCode::kValueOutOfRange, i, "value is ", value, ", must be ",
                  RangeText(dim.min, dim.max));
    }
    auto& origin = plan_.origins_[static_cast<std::size_t>(index)];
    auto& known = plan_.dims[static_cast<std::size_t>(index)];
    if (origin.input >= 0 && known != value) {
      return Fail(ErrorCode::kSizeMismatch, i, "value is ", value, ", must be ", known, ", as ",
                  OriginText(index));
    }
    known = value;
    if (origin.input < 0) origin = {static_cast<std::int32_t>(i), -1};
    return std::nullopt;
  }

  std::optional<Error> CheckGuards() const {
    for (const GuardSpec& guard : spec_.guards) {
      if (guard.holds(plan_.dims.data())) continue;
      if (quiet_) return Error(ErrorCode::kSizeMismatch, std::string());
      std::string values;
      for (const std::int32_t dim : guard.dims) {
        values += values.empty() ? "" : ", ";
        values += DimText(dim);
      }
      return Error(ErrorCode::kSizeMismatch,
                   StrCat(spec_.name, ": ", values, ", must satisfy \"", guard.text, "\""));
    }
    return std::nullopt;
  }

  // Where the value of a dim comes from.
  std::string OriginText(std::int32_t dim) const {
    const Extent& alias = spec_.dims[static_cast<std::size_t>(dim)].alias;
    if (alias.dim >= 0) dim = alias.dim;
    const auto& origin = plan_.origins_[static_cast<std::size_t>(dim)];
    if (origin.input < 0) return "no input has it";
    const char* name = spec_.inputs[static_cast<std::size_t>(origin.input)].name;
    if (origin.dim < 0) return StrCat("input \"", name, "\"");
    return StrCat("input \"", name, "\" dim ", origin.dim);
  }

  // "2*half + 1", also where the extent's text is the name of a derived dim.
  std::string Formula(const Extent& extent) const {
    std::string text =
        StrCat(extent.scale, "*", spec_.dims[static_cast<std::size_t>(extent.dim)].name);
    if (extent.offset > 0) return StrCat(text, " + ", extent.offset);
    if (extent.offset < 0) return StrCat(text, " - ", -extent.offset);
    return text;
  }

  std::optional<Error> CheckMemory(std::size_t i) const {
    const InputSpec& expected = spec_.inputs[i];
    const TensorView& given = inputs_[i];
    const auto numel = CheckedNumel(given.sizes, SizeOf(given.dtype));
    if (!numel) {
      return Fail(ErrorCode::kWrongSize, i, "shape ", ShapeText(given.sizes),
                  " has more elements than memory can hold");
    }
    plan_.inputs[i].numel = *numel;
    if (given.buffer_elements >= 0 && given.buffer_elements != *numel) {
      return Fail(ErrorCode::kWrongSize, i, "the buffer holds ", given.buffer_elements,
                  " elements, but shape ", ShapeText(given.sizes), " has ", *numel);
    }
    if (given.data == nullptr && *numel > 0) {
      return Fail(ErrorCode::kNullData, i, "data is null, but shape ", ShapeText(given.sizes),
                  " has ", *numel, " elements");
    }
    if (expected.mutated && given.read_only) {
      return Fail(ErrorCode::kReadOnly, i, "memory is read-only, but the model writes to it");
    }
    return std::nullopt;
  }

  // Writes the strides that the program expects to `wanted`.
  std::optional<Error> CheckLayout(std::size_t i, std::int64_t* wanted) {
    const InputSpec& expected = spec_.inputs[i];
    const TensorView& given = inputs_[i];
    InputPlan& plan = plan_.inputs[i];
    const std::size_t rank = given.sizes.size();
    plan.strides = {wanted, rank};
    const bool contiguous = expected.strides == nullptr;
    if (contiguous) {
      ContiguousStrides(given.sizes, wanted);
    } else {
      expected.strides(plan_.dims.data(), wanted);
    }
    const std::int64_t* strides = plan_.GivenStrides(given);
    if (!RangeOf(given)) {
      return Fail(ErrorCode::kWrongStrides, i, "strides are ", ShapeText({strides, rank}),
                  ", which reach beyond the address space");
    }
    const bool aligned = IsAligned(given);
    const bool same = SameLayout(given.sizes, strides, wanted);
    plan.copy = !(same && aligned) && plan.numel > 0;
    if (!plan.copy || !expected.mutated) return std::nullopt;
    if (!aligned) {
      return Fail(ErrorCode::kInvalidArgument, i, "address must be a multiple of ",
                  Alignment(given.dtype), ", because the model writes to it in place");
    }
    return Fail(ErrorCode::kWrongStrides, i, "strides are ", ShapeText({strides, rank}),
                ", must be ", ShapeText(plan.strides), contiguous ? " (contiguous)" : "",
                ", because the model writes to it in place");
  }

  // An input that the model writes to must not share memory with another input: the program was
  // made for inputs that do not change each other, and could read both old and new values.
  std::optional<Error> CheckOverlaps() {
    auto& occupied = plan_.occupied_;
    occupied.clear();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const AddressRange range = RangeOf(inputs_[i]).value_or(AddressRange());
      if (!range.empty()) occupied.push_back({range, spec_.inputs[i].mutated});
    }
    std::ranges::sort(occupied, std::less(), [](const auto& item) { return item.range.begin; });
    std::uintptr_t end = 0;          // of all ranges so far
    std::uintptr_t written_end = 0;  // of the ranges that the model writes to
    for (const auto& [range, written] : occupied) {
      if (range.begin < (written ? end : written_end)) return FindOverlap();
      end = std::max(end, range.end);
      if (written) written_end = std::max(written_end, range.end);
    }
    return std::nullopt;
  }

  // Compares each pair of inputs: their address ranges may overlap although they share no element.
  std::optional<Error> FindOverlap() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!spec_.inputs[i].mutated) continue;
      for (std::size_t other = 0; other < inputs_.size(); ++other) {
        if (other == i || !ShareMemory(inputs_[i], inputs_[other])) continue;
        return Fail(
            ErrorCode::kOverlap, i, "memory overlaps that of input \"", spec_.inputs[other].name,
            "\", but the model writes to it; must have memory of its own: pass a copy of one "
            "of them");
      }
    }
    return std::nullopt;
  }

  static bool IsAligned(const TensorView& given) {
    return (reinterpret_cast<std::uintptr_t>(given.data) & (Alignment(given.dtype) - 1)) == 0;
  }

  std::optional<Error> CheckValues(std::size_t i) const {
    const InputSpec& expected = spec_.inputs[i];
    if (expected.number && expected.dtype == DType::kFloat64) return CheckFloat(i);
    if (!expected.has_values || inputs_[i].cuda_device != TensorView::kCpu) return std::nullopt;
    const auto outlier = FindOutlier(inputs_[i], expected.min_value, expected.max_value);
    if (!outlier) return std::nullopt;
    return Fail(ErrorCode::kValueOutOfRange, i, "value at ", ShapeText(Ints(outlier->index)),
                " is ", outlier->value, ", must be in ", expected.min_value, "..",
                expected.max_value);
  }

  std::optional<Error> CheckFloat(std::size_t i) const {
    const auto [low, high] = std::pair(spec_.inputs[i].low, spec_.inputs[i].high);
    if (std::isinf(low) && std::isinf(high)) return std::nullopt;
    double value;
    std::memcpy(&value, inputs_[i].data, sizeof(value));
    if (value >= low && value <= high) return std::nullopt;
    return Fail(ErrorCode::kValueOutOfRange, i, "value is ", value, ", must be in ", low, "..",
                high);
  }

  const ProgramSpec& spec_;
  const std::span<const TensorView> inputs_;
  CallPlan& plan_;
  const bool quiet_;
  bool has_computed_ = false;
  bool any_device_ = false;  // where a tensor is chooses no variant: its program says what it takes
};

std::optional<Error> CheckCall(const ProgramSpec& spec, std::span<const TensorView> inputs,
                               bool check_values, CallPlan& plan) {
  return CallChecker(spec, inputs, plan).Run(check_values);
}

std::optional<Error> CheckSizes(const ProgramSpec& spec, std::span<const TensorView> inputs,
                                CallPlan& plan) {
  return CallChecker(spec, inputs, plan).CheckSizesAndNumbers();
}

bool FitsSizes(const ProgramSpec& spec, std::span<const TensorView> inputs, CallPlan& plan) {
  return !CallChecker(spec, inputs, plan, /*quiet=*/true).CheckSizesAndNumbers();
}

}  // namespace aoti::internal
