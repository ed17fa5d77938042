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

// One line per tensor that is not as the spec says; empty when all are.
std::vector<std::string> Differences(const ProgramSpec& spec, const TensorsByName& stored) {
  std::vector<std::string> lines;
  TensorsByName extra = stored;
  for (const WeightSpec& wanted : spec.weights) {
    const auto found = stored.find(wanted.name);
    if (found == stored.end()) {
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
  Weights weights;
  if (spec.weights.empty()) return weights;

  auto file = MappedFile::Open(path);
  if (!file.ok()) {
    return Error(file.error().code(), StrCat(spec.name, ": weights ", file.error().message()));
  }
  weights.file_ = *std::move(file);
  const auto tensors =
      ParseSafetensors(weights.file_->bytes(), StrCat(spec.name, ": weights ", path));
  if (!tensors.ok()) return tensors.error();

  TensorsByName stored;
  for (const StoredTensor& tensor : *tensors) stored.emplace(tensor.name, &tensor);
  const std::vector<std::string> differences = Differences(spec, stored);
  if (!differences.empty()) {
    std::string message = StrCat(spec.name, ": weights ", path, " are not those of ", spec.label,
                                 "; ", differences.size(), " tensors differ:");
    for (const std::string& line : differences) message += "\n  " + line;
    return Error(ErrorCode::kWeightsMismatch, std::move(message));
  }

  for (const WeightSpec& wanted : spec.weights) {
    const StoredTensor& tensor = *stored.at(wanted.name);
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
  if (file_ != nullptr && Within(address, file_->bytes().data(), file_->bytes().size()))
    return true;
  return std::ranges::any_of(
      copies_, [address](const Buffer& copy) { return Within(address, copy.data(), copy.size()); });
}

}  // namespace aoti::internal
