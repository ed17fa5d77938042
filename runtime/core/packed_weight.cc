#include "runtime/core/packed_weight.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/core/digest.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

struct AboutPacked {
  char magic[8];
  std::uint64_t name;    // digest of the packed tensor's name
  std::uint64_t plain;   // digest of the plain weight
  std::uint64_t layout;  // digest of the weight in the layout
  char zeros[32];
};
static_assert(sizeof(AboutPacked) == kAboutPackedBytes);

constexpr std::string_view kMagic = "aotipack";

}  // namespace

std::optional<std::string> WrongPackedType(const PackedSpec& spec, const StoredTensor& stored) {
  const std::size_t bytes = spec.bytes + kAboutPackedBytes;
  if (stored.dtype == DType::kUInt8 && stored.sizes.size() == 1 && stored.bytes.size() == bytes) {
    return std::nullopt;
  }
  return StrCat(DType::kUInt8, "[", bytes, "]");
}

std::optional<std::string> CheckPacked(const PackedSpec& spec, const StoredTensor& stored,
                                       const StoredTensor* plain) {
  AboutPacked about;
  std::memcpy(&about, stored.bytes.data() + spec.bytes, sizeof(about));
  const std::string_view name = spec.name;
  if (std::string_view(about.magic, sizeof(about.magic)) != kMagic ||
      about.name != Digest(std::as_bytes(std::span(name)))) {
    return StrCat("\"", name,
                  "\" is not what the build packed under this name; give plain tensors, without "
                  "packed ones, or a file as the build wrote it");
  }
  // The plain weight is read and compared only if the file has both. Otherwise the packed tensor is
  // the weight, and nothing can contradict it.
  if (plain == nullptr ||
      (about.plain == Digest(plain->bytes) && about.layout == Digest(LayoutOf(spec, stored)))) {
    return std::nullopt;
  }
  return StrCat("\"", plain->name, "\" and its packed copy \"", name,
                "\" disagree: one was changed without the other; leave the packed one out, or have "
                "the build pack the changed weights");
}

std::span<const std::byte> LayoutOf(const PackedSpec& spec, const StoredTensor& stored) {
  return stored.bytes.first(spec.bytes);
}

}  // namespace aoti::internal
