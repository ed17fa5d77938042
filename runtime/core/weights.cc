#include "runtime/core/weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/core/safetensors.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

using Ints = std::span<const std::int64_t>;
using TensorsByName = std::unordered_map<std::string_view, const StoredTensor*>;

// The packed copy in the file that makes the weight itself unnecessary.
const StoredTensor* PackedOnly(const ProgramSpec& spec, std::size_t weight,
                               const TensorsByName& stored) {
  for (const PackedSpec& packed : spec.packed) {
    if (!packed.only || packed.weight != static_cast<std::int32_t>(weight)) continue;
    const auto found = stored.find(packed.name);
    if (found != stored.end()) return found->second;
  }
  return nullptr;
}

// One line per tensor that is not as the spec says; empty when all are.
std::vector<std::string> Differences(const ProgramSpec& spec, const TensorsByName& stored) {
  std::vector<std::string> lines;
  TensorsByName extra = stored;
  for (const PackedSpec& packed : spec.packed) extra.erase(packed.name);
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    const WeightSpec& wanted = spec.weights[i];
    const auto found = stored.find(wanted.name);
    if (found == stored.end()) {
      if (PackedOnly(spec, i, stored) != nullptr) continue;
      lines.push_back(
          StrCat("missing: \"", wanted.name, "\", ", wanted.dtype, ShapeText(wanted.sizes)));
      continue;
    }
    extra.erase(wanted.name);
    const StoredTensor& tensor = *found->second;
    if (tensor.dtype != wanted.dtype || !std::ranges::equal(tensor.sizes, wanted.sizes)) {
      lines.push_back(StrCat("wrong: \"", wanted.name, "\" is ", tensor.dtype,
                             ShapeText(Ints(tensor.sizes)), ", must be ", wanted.dtype,
                             ShapeText(wanted.sizes)));
    }
  }
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : extra) {
    unknown.push_back(
        StrCat("extra: \"", name, "\", ", tensor->dtype, ShapeText(Ints(tensor->sizes))));
  }
  std::ranges::sort(unknown);
  lines.insert(lines.end(), unknown.begin(), unknown.end());
  return lines;
}

bool Aligned(const StoredTensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % SizeOf(tensor.dtype) == 0;
}

bool Within(const void* address, const void* begin, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto* first = static_cast<const std::byte*>(begin);
  // std::less orders pointers into different objects too.
  return !std::less<>()(at, first) && std::less<>()(at, first + size);
}

}  // namespace

Result<Weights> Weights::Load(const ProgramSpec& spec, const std::string& path) {
  if (spec.weights.empty()) return Weights();
  auto file = MappedFile::Open(path);
  if (!file.ok()) {
    return Error(file.error().code(), StrCat(spec.name, ": weights ", file.error().message()));
  }
  auto weights = Read(spec, (*file)->bytes(), path);
  if (weights.ok()) weights->file_ = *std::move(file);
  return weights;
}

Result<Weights> Weights::Embedded(const ProgramSpec& spec) {
  return Read(spec, {spec.embedded_begin, spec.embedded_end}, "(embedded)");
}

Result<Weights> Weights::Read(const ProgramSpec& spec, std::span<const std::byte> bytes,
                              const std::string& where) {
  Weights weights;
  weights.bytes_ = bytes;
  const auto tensors = ParseSafetensors(bytes, StrCat(spec.name, ": weights ", where));
  if (!tensors.ok()) return tensors.error();

  TensorsByName stored;
  for (const StoredTensor& tensor : *tensors) stored.emplace(tensor.name, &tensor);
  const std::vector<std::string> differences = Differences(spec, stored);
  if (!differences.empty()) {
    std::string message = StrCat(spec.name, ": weights ", where, " are not those of ", spec.label,
                                 "; ", differences.size(), " tensors differ:");
    for (const std::string& line : differences) message += "\n  " + line;
    return Error(ErrorCode::kWeightsMismatch, std::move(message));
  }

  for (const PackedSpec& packed : spec.packed) {
    const auto found = stored.find(packed.name);
    weights.packed_.push_back(found == stored.end() ? std::span<const std::byte>()
                                                    : found->second->bytes);
  }
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    const WeightSpec& wanted = spec.weights[i];
    const auto found = stored.find(wanted.name);
    const StoredTensor& tensor =
        found == stored.end() ? *PackedOnly(spec, i, stored) : *found->second;
    if (wanted.mutated || tensor.bytes.empty() || !Aligned(tensor)) {
      const Buffer& copy = weights.copies_.emplace_back(tensor.bytes.size());
      if (!tensor.bytes.empty()) {
        std::memcpy(copy.data(), tensor.bytes.data(), tensor.bytes.size());
      }
      weights.data_.push_back(copy.data());
    } else {
      weights.data_.push_back(const_cast<std::byte*>(tensor.bytes.data()));
    }
  }
  return weights;
}

bool Weights::Contains(const void* address) const {
  if (Within(address, bytes_.data(), bytes_.size())) return true;
  return std::ranges::any_of(
      copies_, [address](const Buffer& copy) { return Within(address, copy.data(), copy.size()); });
}

}  // namespace aoti::internal
