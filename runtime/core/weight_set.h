// The weights of one file, as a program takes them.

#ifndef AOTI_RUNTIME_CORE_WEIGHT_SET_H_
#define AOTI_RUNTIME_CORE_WEIGHT_SET_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/device.h"
#include "runtime/core/program.h"
#include "runtime/core/shim.h"
#include "runtime/core/weights.h"

namespace aoti::internal {

// Immutable, except for the state that the program writes to. Each runner holds a reference to its
// set, so that the memory of a set that was replaced is freed with its last runner.
class WeightSet {
 public:
  // The references must outlive the set. device: where the program runs; null: on the CPU. Errors:
  // kInternal, kOutOfMemory. May throw DeviceError.
  static Result<std::shared_ptr<const WeightSet>> Make(const ProgramSpec& spec,
                                                       const ProgramVariant& variant,
                                                       const ProgramVTable& program,
                                                       std::shared_ptr<Device> device,
                                                       std::shared_ptr<const Weights> weights);

  const Weights& weights() const { return *weights_; }
  const std::shared_ptr<const Weights>& shared_weights() const { return weights_; }
  // Null for a program that runs on the CPU.
  Device* device() const { return device_.get(); }
  // Whether the program finds a weight at this address.
  bool Contains(const void* address) const;
  // Views of the weights, in the program's order.
  std::span<const AtenTensorHandle> constants() const { return raw_constants_; }

 private:
  WeightSet(std::shared_ptr<Device> device, std::shared_ptr<const Weights> weights)
      : device_(std::move(device)), weights_(std::move(weights)) {}

  std::optional<Error> MakeConstants(const ProgramSpec& spec, const ProgramVariant& variant,
                                     const Shim& shim);
  // The memory in which the program finds a weight.
  void* Place(const ProgramSpec& spec, std::size_t weight);
  std::optional<Error> AttachPacked(const ProgramSpec& spec, const ProgramVariant& variant,
                                    const ProgramVTable& program);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<const Weights> weights_;
  struct DeviceCopy {
    DeviceMemory memory;
    std::size_t bytes = 0;
  };
  std::vector<DeviceCopy> copies_;  // by weight, of those that the program reads on a device
  std::vector<OwnedHandle> constants_;
  std::vector<AtenTensorHandle> raw_constants_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_WEIGHT_SET_H_
