// Packed tensors in the weights file, as toolchain/driver/aoti_driver/packing/packed_format.py
// writes them: a weight in a layout, then 64 bytes about it.

#ifndef AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_
#define AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "aoti/program_spec.h"
#include "runtime/core/safetensors.h"

namespace aoti::internal {

// Behind the layout, in the same tensor.
constexpr std::size_t kAboutPackedBytes = 64;
// That operators rely on.
constexpr std::size_t kPackedAlignment = 64;

// What the tensor would have to be, "uint8[128]"; nothing where it is that.
std::optional<std::string> WrongPackedType(const PackedSpec& spec, const StoredTensor& stored);

// What is wrong with the contents, or nothing. `plain`: the weight itself, null where the file
// lacks it. The type must be right.
std::optional<std::string> CheckPacked(const PackedSpec& spec, const StoredTensor& stored,
                                       const StoredTensor* plain);

// The weight in its layout. The type must be right.
std::span<const std::byte> LayoutOf(const PackedSpec& spec, const StoredTensor& stored);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_
