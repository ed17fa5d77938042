// Packed tensors in the weights file, as toolchain/driver/aoti_driver/packing/packed_format.py
// writes them: a weight in a layout, then 64 bytes that describe it.

#ifndef AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_
#define AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "aoti/program_spec.h"
#include "runtime/core/safetensors.h"

namespace aoti::internal {

// Bytes after the layout, in the same tensor.
constexpr std::size_t kAboutPackedBytes = 64;
// The alignment that operators rely on.
constexpr std::size_t kPackedAlignment = 64;

// The type that the tensor should have, such as "uint8[128]"; nullopt if it has that type.
std::optional<std::string> WrongPackedType(const PackedSpec& spec, const StoredTensor& stored);

// A description of what is wrong with the contents, or nullopt. `plain`: the plain weight, null if
// the file lacks it. Call this only if WrongPackedType() returned nullopt.
std::optional<std::string> CheckPacked(const PackedSpec& spec, const StoredTensor& stored,
                                       const StoredTensor* plain);

// The weight in its layout. Call this only if WrongPackedType() returned nullopt.
std::span<const std::byte> LayoutOf(const PackedSpec& spec, const StoredTensor& stored);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PACKED_WEIGHT_H_
