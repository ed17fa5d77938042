#include "runtime/core/plain_calls.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/core/dtype_table.h"

namespace aoti::internal {
namespace {

constexpr std::uintptr_t kLastAddress = std::numeric_limits<std::uintptr_t>::max();

bool GiveTheSameSize(const Extent& a, const Extent& b) {
  return a.scale == b.scale && a.dim == b.dim && a.offset == b.offset && a.compute == b.compute;
}

bool IsStatic(const Extent& extent) { return extent.dim < 0 && extent.compute == nullptr; }

}  // namespace

std::size_t Alignment(DType dtype) {
  return dtype == DType::kComplex64 ? sizeof(float) : FactsOf(dtype)->bytes;
}

std::int64_t SizeFor(const Extent& extent, std::int64_t dim) {
  std::int64_t size;
  if (__builtin_mul_overflow(extent.scale, dim, &size) ||
      __builtin_add_overflow(size, extent.offset, &size)) {
    return kUnbounded;
  }
  return size;
}

void SolveDerivedDims(std::span<const DimSpec> specs, std::int64_t* dims) {
  for (std::size_t d = 0; d < specs.size(); ++d) {
    const Extent& alias = specs[d].alias;
    if (alias.dim >= 0) dims[d] = SizeFor(alias, dims[alias.dim]);
  }
}

// Whether a tensor has the shape of its input for the values of the dims, and is taken as it is.
// Inlined, because a call per input takes a third longer.
[[gnu::always_inline]] inline bool PlainCalls::IsPlain(const Input& expected,
                                                       const TensorView& given) const {
  const Shape& shape = shapes_[expected.shape];
  const auto address = reinterpret_cast<std::uintptr_t>(given.data);
  if (given.dtype != expected.dtype || given.sizes.size() != shape.rank || address == 0 ||
      (address & expected.address_bits) != 0 || address > shape.last_address ||
      (expected.written && given.read_only) || given.cuda_device != TensorView::kCpu ||
      (given.buffer_elements != TensorView::kUnknown && given.buffer_elements != shape.numel)) {
    return false;
  }
  const std::int64_t* const sizes = sizes_.data() + shape.begin;
  std::int64_t difference = 0;
  for (std::size_t d = 0; d < shape.rank; ++d) difference |= given.sizes[d] ^ sizes[d];
  if (difference != 0) return false;
  if (given.strides.empty()) return true;
  if (given.strides.size() != shape.rank) return false;
  // No element is reached by the stride of a dimension with one element.
  const std::int64_t* const strides = strides_.data() + shape.begin;
  for (std::size_t d = 0; d < shape.rank; ++d) {
    if (given.strides[d] != strides[d] && sizes[d] != 1) return false;
  }
  return true;
}

bool PlainCalls::Accept(const ProgramSpec& spec, std::span<const TensorView> inputs,
                        std::vector<std::int64_t>& dims, std::vector<InputPlan>& plans) {
  if (!compiled_) Compile(spec);
  if (!possible_ || inputs.size() != inputs_.size()) return false;
  dims.resize(spec.dims.size());
  if (!LearnDims(inputs, dims)) return false;
  if (!current_ && !ComputeShapes(spec, dims, plans)) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!IsPlain(inputs_[i], inputs[i])) return false;
  }
  return true;
}

void PlainCalls::Compile(const ProgramSpec& spec) {
  compiled_ = true;
  writes_ = std::ranges::any_of(spec.inputs, &InputSpec::mutated);
  possible_ = FindSources(spec) && std::ranges::all_of(spec.inputs, [](const InputSpec& input) {
                return input.strides == nullptr;
              });
  if (!possible_) return;
  std::vector<std::span<const Extent>> known;
  for (const InputSpec& input : spec.inputs) {
    const auto element_size = static_cast<std::uint32_t>(FactsOf(input.dtype)->bytes);
    inputs_.push_back({.shape = ShapeFor(input.sizes, element_size, known),
                       .dtype = input.dtype,
                       .written = input.mutated,
                       .address_bits = Alignment(input.dtype) - 1});
  }
  strides_.resize(sizes_.size());
}

// Whether each free dim has a source, and at most one number.
bool PlainCalls::FindSources(const ProgramSpec& spec) {
  std::vector<bool> found(spec.dims.size());
  for (std::uint32_t i = 0; i < spec.inputs.size(); ++i) {
    const std::int32_t dim = spec.inputs[i].value_dim;
    if (dim < 0) continue;
    if (found[static_cast<std::size_t>(dim)]) return false;
    found[static_cast<std::size_t>(dim)] = true;
    sources_.push_back({static_cast<std::uint32_t>(dim), i, 0, true, 1, 0});
  }
  for (std::uint32_t i = 0; i < spec.inputs.size(); ++i) {
    const std::span<const Extent> sizes = spec.inputs[i].sizes;
    for (std::uint32_t axis = 0; axis < sizes.size(); ++axis) {
      const auto dim = static_cast<std::uint32_t>(sizes[axis].dim);
      if (sizes[axis].dim < 0 || sizes[axis].scale < 1 || found[dim]) continue;
      found[dim] = true;
      sources_.push_back({dim, i, axis, false, sizes[axis].scale, sizes[axis].offset});
    }
  }
  for (std::size_t dim = 0; dim < found.size(); ++dim) {
    if (found[dim] == spec.dims[dim].derived()) return false;
  }
  return true;
}

// The shape with these sizes: one of `known`, which are those of the shapes so far, or a new one.
std::uint32_t PlainCalls::ShapeFor(std::span<const Extent> extents, std::uint32_t element_size,
                                   std::vector<std::span<const Extent>>& known) {
  for (std::uint32_t i = 0; i < known.size(); ++i) {
    if (shapes_[i].element_size == element_size &&
        std::ranges::equal(known[i], extents, GiveTheSameSize)) {
      return i;
    }
  }
  known.push_back(extents);
  shapes_.push_back({.begin = static_cast<std::uint32_t>(sizes_.size()),
                     .rank = static_cast<std::uint32_t>(extents.size()),
                     .element_size = element_size,
                     .numel = 1,
                     .last_address = kLastAddress - element_size});
  for (const Extent& extent : extents) {
    if (!IsStatic(extent)) {
      varying_.push_back({static_cast<std::uint32_t>(sizes_.size()), extent});
    }
    sizes_.push_back(extent.offset);
  }
  return static_cast<std::uint32_t>(shapes_.size() - 1);
}

// Whether the inputs have a value for each free dim. Whether sizes and values are those that were
// declared is found out later, by comparing them with what follows from the dims.
bool PlainCalls::LearnDims(std::span<const TensorView> inputs, std::vector<std::int64_t>& dims) {
  for (const Source& source : sources_) {
    const Input& expected = inputs_[source.input];
    const TensorView& given = inputs[source.input];
    std::int64_t value;
    if (source.is_number) {
      if (!IsPlain(expected, given)) return false;
      std::memcpy(&value, given.data, sizeof(value));
    } else {
      if (given.sizes.size() <= source.axis ||
          __builtin_sub_overflow(given.sizes[source.axis], source.offset, &value)) {
        return false;
      }
      if (source.scale != 1) value /= source.scale;
    }
    current_ &= dims[source.dim] == value;
    dims[source.dim] = value;
  }
  return true;
}

// Whether the dims are in their ranges and meet the conditions, and no size is 0; then all tables
// are those for the dims.
bool PlainCalls::ComputeShapes(const ProgramSpec& spec, std::vector<std::int64_t>& dims,
                               std::vector<InputPlan>& plans) {
  for (const Source& source : sources_) {
    const DimSpec& dim = spec.dims[source.dim];
    if (dims[source.dim] < dim.min || dims[source.dim] > dim.max) return false;
  }
  SolveDerivedDims(spec.dims, dims.data());
  for (const GuardSpec& guard : spec.guards) {
    if (!guard.holds(dims.data())) return false;
  }
  for (const auto& [at, extent] : varying_) {
    sizes_[at] =
        extent.compute != nullptr ? extent.compute(dims.data()) : SizeFor(extent, dims[extent.dim]);
  }
  for (Shape& shape : shapes_) {
    std::int64_t numel = 1;
    for (std::size_t d = shape.begin + shape.rank; d-- > shape.begin;) {
      strides_[d] = numel;
      if (sizes_[d] < 1 || sizes_[d] == kUnbounded ||
          __builtin_mul_overflow(numel, sizes_[d], &numel)) {
        return false;
      }
    }
    std::uintptr_t bytes;
    if (__builtin_mul_overflow(numel, shape.element_size, &bytes)) return false;
    shape.numel = numel;
    shape.last_address = kLastAddress - bytes;
  }
  plans.resize(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Shape& shape = shapes_[inputs_[i].shape];
    plans[i] = {.strides = {strides_.data() + shape.begin, shape.rank}, .numel = shape.numel};
  }
  current_ = true;
  return true;
}

}  // namespace aoti::internal
