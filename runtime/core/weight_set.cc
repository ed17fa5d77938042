#include "runtime/core/weight_set.h"

#include <cstddef>
#include <cstdint>

#include "runtime/core/layout.h"
#include "runtime/core/text.h"

namespace aoti::internal {

Result<std::shared_ptr<const WeightSet>> WeightSet::Make(const ProgramSpec& spec,
                                                         const ProgramVariant& variant,
                                                         const ProgramVTable& program,
                                                         std::shared_ptr<Device> device,
                                                         std::shared_ptr<const Weights> weights) {
  const DeviceNumber number = device == nullptr ? DeviceNumber() : device->number();
  auto set = std::shared_ptr<WeightSet>(new WeightSet(std::move(device), std::move(weights)));
  if (auto error = set->MakeConstants(spec, variant, Shim(program.shim, number))) {
    return *std::move(error);
  }
  if (set->device_ == nullptr) {
    if (auto error = set->AttachPacked(spec, variant, program)) return *std::move(error);
  }
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
    auto handle = shim.BorrowMemory(Place(spec, index), constant.dtype, constant.sizes,
                                    constant.strides, constant.offset);
    if (!handle.ok()) return std::move(handle).error();
    raw_constants_.push_back(handle->get());
    constants_.push_back(*std::move(handle));
  }
  return std::nullopt;
}

bool WeightSet::Contains(const void* address) const {
  if (device_ == nullptr) return weights_->Contains(address);
  for (const DeviceCopy& copy : copies_) {
    if (copy.memory != nullptr && Within(address, copy.memory.get(), copy.bytes)) return true;
  }
  return false;
}

void* WeightSet::Place(const ProgramSpec& spec, std::size_t weight) {
  void* const host = weights_->data(weight);
  // State takes the place of what the program writes to before any call.
  if (device_ == nullptr || spec.weights[weight].mutated) return host;
  copies_.resize(spec.weights.size());
  DeviceCopy& copy = copies_[weight];
  if (copy.memory == nullptr) {
    copy.bytes = BytesOf(spec.weights[weight]);
    copy.memory = device_->Share(host, copy.bytes);
  }
  return copy.memory.get();
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
