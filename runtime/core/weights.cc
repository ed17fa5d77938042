#include "runtime/core/weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/core/layout.h"
#include "runtime/core/packed_weight.h"
#include "runtime/core/safetensors.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

using Ints = std::span<const std::int64_t>;
using TensorsByName = std::unordered_map<std::string_view, const StoredTensor*>;

// The packed tensor in the file that replaces the plain weight; null if there is none.
const StoredTensor* PackedOnly(const ProgramSpec& spec, std::size_t weight,
                               const TensorsByName& stored) {
  for (const PackedSpec& packed : spec.packed) {
    if (!packed.only || packed.weight != static_cast<std::int32_t>(weight)) continue;
    const auto found = stored.find(packed.name);
    if (found != stored.end()) return found->second;
  }
  return nullptr;
}

// The differences from the spec: how many tensors differ, and a line for each of the first ones.
class Differences {
 public:
  // part: whether the file need not have all tensors.
  Differences(const ProgramSpec& spec, const std::vector<StoredTensor>& tensors,
              const TensorsByName& stored, bool part) {
    CompareWeights(spec, stored, part);
    ComparePacked(spec, stored);
    FindExtra(spec, tensors);
  }

  std::size_t count() const { return count_; }

  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += "\n  " + line;
    if (count_ > lines_.size()) text += StrCat("\n  ... and ", count_ - lines_.size(), " more");
    return text;
  }

 private:
  // The limit on listed differences: a file of another kind may have a million.
  static constexpr std::size_t kShown = 50;

  template <typename... Parts>
  void Add(const Parts&... parts) {
    if (count_++ < kShown) lines_.push_back(StrCat(parts...));
  }

  void AddWrong(const StoredTensor& tensor, const std::string& wanted) {
    Add("wrong: \"", tensor.name, "\" is ", TypeOf(tensor), ", must be ", wanted);
  }

  static std::string TypeOf(const StoredTensor& tensor) {
    return StrCat(tensor.dtype, ShapeText(Ints(tensor.sizes)));
  }

  // Whether the file has a packed tensor that needs the plain one beside it.
  static bool NeedsPlain(const ProgramSpec& spec, std::size_t weight, const TensorsByName& stored) {
    return std::ranges::any_of(spec.packed, [&](const PackedSpec& packed) {
      return !packed.only && packed.weight == static_cast<std::int32_t>(weight) &&
             stored.contains(packed.name);
    });
  }

  void CompareWeights(const ProgramSpec& spec, const TensorsByName& stored, bool part) {
    for (std::size_t i = 0; i < spec.weights.size(); ++i) {
      const WeightSpec& wanted = spec.weights[i];
      const auto found = stored.find(wanted.name);
      const std::string type = StrCat(wanted.dtype, ShapeText(wanted.sizes));
      if (found == stored.end()) {
        if (PackedOnly(spec, i, stored) == nullptr && (!part || NeedsPlain(spec, i, stored))) {
          Add("missing: \"", wanted.name, "\", ", type);
        }
      } else if (found->second->dtype != wanted.dtype ||
                 !std::ranges::equal(found->second->sizes, wanted.sizes)) {
        AddWrong(*found->second, type);
      }
    }
  }

  void ComparePacked(const ProgramSpec& spec, const TensorsByName& stored) {
    for (const PackedSpec& packed : spec.packed) {
      const auto found = stored.find(packed.name);
      if (found == stored.end()) continue;
      if (const auto type = WrongPackedType(packed, *found->second))
        AddWrong(*found->second, *type);
    }
  }

  void FindExtra(const ProgramSpec& spec, const std::vector<StoredTensor>& tensors) {
    std::unordered_set<std::string_view> known;
    for (const WeightSpec& weight : spec.weights) known.insert(weight.name);
    for (const PackedSpec& packed : spec.packed) known.insert(packed.name);
    std::vector<const StoredTensor*> extra;
    for (const StoredTensor& tensor : tensors) {
      if (!known.contains(tensor.name)) extra.push_back(&tensor);
    }
    const std::size_t shown = std::min(extra.size(), kShown);
    std::ranges::partial_sort(
        extra, extra.begin() + static_cast<std::ptrdiff_t>(shown), {},
        [](const StoredTensor* tensor) -> std::string_view { return tensor->name; });
    for (std::size_t i = 0; i < shown; ++i) {
      Add("extra: \"", extra[i]->name, "\", ", TypeOf(*extra[i]));
    }
    count_ += extra.size() - shown;
  }

  std::size_t count_ = 0;
  std::vector<std::string> lines_;
};

// `what`, "weights " or "adapter ", begins the errors.
Result<std::shared_ptr<const MappedFile>> OpenFile(const ProgramSpec& spec, std::string_view what,
                                                   const std::string& path, bool copy) {
  auto file = copy ? MappedFile::Read(path) : MappedFile::Open(path);
  if (file.ok()) return file;
  return Error(file.error().code(), StrCat(spec.name, ": ", what, file.error().message()));
}

}  // namespace

std::size_t BytesOf(const WeightSpec& weight) {
  const std::size_t element = SizeOf(weight.dtype);
  return element * static_cast<std::size_t>(CheckedNumel(weight.sizes, element).value_or(0));
}

Result<Weights> Weights::Load(const ProgramSpec& spec, const std::string& path, bool copy) {
  if (spec.weights.empty()) return Weights();
  auto file = OpenFile(spec, "weights ", path, copy);
  if (!file.ok()) return std::move(file).error();
  auto weights = Borrow(spec, (*file)->bytes(), StrCat("weights ", path));
  if (weights.ok()) weights->files_.push_back(*std::move(file));
  return weights;
}

Result<Weights> Weights::Embedded(const ProgramSpec& spec) {
  return Borrow(spec, {spec.embedded_begin, spec.embedded_end}, "weights (embedded)");
}

Result<Weights> Weights::Borrow(const ProgramSpec& spec, std::span<const std::byte> bytes,
                                const std::string& where) {
  Weights weights;
  weights.data_.resize(spec.weights.size());
  weights.packed_.resize(spec.packed.size());
  if (auto error = weights.Add(spec, bytes, where, /*part=*/false)) return *std::move(error);
  return weights;
}

std::optional<Error> Weights::Adapt(const ProgramSpec& spec, const std::string& path, bool copy) {
  if (spec.weights.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec.name, ": has no weights; there is nothing to adapt"));
  }
  auto file = OpenFile(spec, "adapter ", path, copy);
  if (!file.ok()) return std::move(file).error();
  if (auto error = Add(spec, (*file)->bytes(), StrCat("adapter ", path), /*part=*/true)) {
    return error;
  }
  files_.push_back(*std::move(file));
  return std::nullopt;
}

std::optional<Error> Weights::Add(const ProgramSpec& spec, std::span<const std::byte> bytes,
                                  const std::string& where, bool part) {
  // Beyond this number, a list of differences is of no use.
  const std::size_t most = 1000 + 2 * (spec.weights.size() + spec.packed.size());
  std::string program;
  const auto tensors = ParseSafetensors(bytes, StrCat(spec.name, ": ", where), most, &program);
  if (!tensors.ok()) return tensors.error();
  if (!program.empty() && *spec.digest != '\0' && program != spec.digest) {
    return Error(
        ErrorCode::kWeightsMismatch,
        StrCat(spec.name, ": ", where, ": its metadata says that it was made for the program ",
               program, ", but this program of ", spec.label, " is ", spec.digest,
               ". Make the file with this program, or leave \"", kProgramKey,
               "\" out of its metadata if its tensors mean the same."));
  }

  TensorsByName stored;
  for (const StoredTensor& tensor : *tensors) stored.emplace(tensor.name, &tensor);
  const Differences differences(spec, *tensors, stored, part);
  if (differences.count() > 0) {
    return Error(
        ErrorCode::kWeightsMismatch,
        StrCat(spec.name, ": ", where, part ? " does not fit " : " are not those of ", spec.label,
               "; ", differences.count(), " tensors differ:", differences.Text()));
  }

  if (part && tensors->empty()) {
    return Error(
        ErrorCode::kWeightsMismatch,
        StrCat(spec.name, ": ", where, " has no tensors, must have some of those of ", spec.label));
  }

  regions_.push_back(bytes);
  for (std::size_t p = 0; p < spec.packed.size(); ++p) {
    const PackedSpec& packed = spec.packed[p];
    const auto found = stored.find(packed.name);
    const auto plain = stored.find(spec.weights[static_cast<std::size_t>(packed.weight)].name);
    const StoredTensor* given = plain == stored.end() ? nullptr : plain->second;
    if (found == stored.end()) {
      if (given != nullptr) packed_[p] = {};  // operators read the plain weight
      continue;
    }
    if (const auto problem = CheckPacked(packed, *found->second, given)) {
      return Error(ErrorCode::kWeightsMismatch, StrCat(spec.name, ": ", where, ": ", *problem));
    }
    packed_[p] = InPlace(LayoutOf(packed, *found->second), kPackedAlignment);
  }
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    const auto found = stored.find(spec.weights[i].name);
    const StoredTensor* tensor =
        found == stored.end() ? PackedOnly(spec, i, stored) : found->second;
    if (tensor == nullptr) continue;  // it stays what it is
    const auto memory = tensor->bytes.empty() ? Copy(tensor->bytes, copies_)
                                              : InPlace(tensor->bytes, SizeOf(tensor->dtype));
    data_[i] = const_cast<std::byte*>(memory.data());
  }
  return std::nullopt;
}

std::span<const std::byte> Weights::Copy(std::span<const std::byte> bytes,
                                         std::vector<Buffer>& copies) {
  const Buffer& copy = copies.emplace_back(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return {static_cast<const std::byte*>(copy.data()), bytes.size()};
}

std::span<const std::byte> Weights::InPlace(std::span<const std::byte> bytes,
                                            std::size_t alignment) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
  return aligned ? bytes : Copy(bytes, copies_);
}

bool Weights::Contains(const void* address) const {
  for (const std::span<const std::byte> region : regions_) {
    if (Within(address, region.data(), region.size())) return true;
  }
  return std::ranges::any_of(copies_,
                             [address](const Buffer& copy) { return copy.Contains(address); });
}

}  // namespace aoti::internal
