#include "runtime/core/weight_set.h"

#include <cstddef>
#include <cstdint>

#include "runtime/core/layout.h"
#include "runtime/core/text.h"

namespace aoti::internal {

Result<std::shared_ptr<const WeightSet>> WeightSet::Make(const ProgramSpec& spec,
                                                         const ProgramVariant& variant,
                                                         const ProgramVTable& program,
                                                         std::shared_ptr<const Weights> weights) {
  auto set = std::shared_ptr<WeightSet>(new WeightSet(std::move(weights)));
  if (auto error = set->MakeConstants(spec, variant, Shim(program.shim))) return *std::move(error);
  if (auto error = set->AttachPacked(spec, variant, program)) return *std::move(error);
  return std::shared_ptr<const WeightSet>(std::move(set));
}

std::optional<Error> WeightSet::MakeConstants(const ProgramSpec& spec,
                                              const ProgramVariant& variant, const Shim& shim) {
  for (const ConstantSpec& constant : variant.constants) {
    const auto index = static_cast<std::size_t>(constant.weight);
    const WeightSpec& weight = spec.weights[index];
    const auto available = static_cast<std::int64_t>(BytesOf(weight));
    const std::int64_t elements = StorageElements(constant.sizes, constant.strides.data());
    if (elements > 0 &&
        (constant.offset + elements) * static_cast<std::int64_t>(SizeOf(constant.dtype)) >
            available) {
      return Error(ErrorCode::kInternal, StrCat(spec.name, ": the program's view of weight \"",
                                                weight.name, "\" reaches past its end"));
    }
    auto handle = shim.BorrowMemory(weights_->data(index), constant.dtype, constant.sizes,
                                    constant.strides, constant.offset);
    if (!handle.ok()) return std::move(handle).error();
    raw_constants_.push_back(handle->get());
    constants_.push_back(*std::move(handle));
  }
  return std::nullopt;
}

std::optional<Error> WeightSet::AttachPacked(const ProgramSpec& spec, const ProgramVariant& variant,
                                             const ProgramVTable& program) {
  for (std::size_t p = 0; p < spec.packed.size(); ++p) {
    if (!spec.reads_packed.empty() && !spec.reads_packed[p]) continue;
    const PackedSpec& packed = spec.packed[p];
    const std::span<const std::byte> bytes = weights_->packed(p);
    if (bytes.empty()) continue;  // not packed: operators read the plain weight
    for (std::size_t i = 0; i < variant.constants.size(); ++i) {
      if (variant.constants[i].weight != packed.weight) continue;
      if (program.shim.set_packed == nullptr ||
          program.shim.set_packed(raw_constants_[i], packed.kind, bytes.data(), bytes.size()) !=
              AOTI_TORCH_SUCCESS) {
        return Error(ErrorCode::kInternal,
                     StrCat(spec.name, ": can't use the packed weight \"", packed.name, "\""));
      }
    }
  }
  return std::nullopt;
}

}  // namespace aoti::internal
