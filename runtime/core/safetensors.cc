#include "runtime/core/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "runtime/core/dtype_table.h"
#include "runtime/core/layout.h"
#include "runtime/core/safetensors_header.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

constexpr std::size_t kLengthBytes = 8;
// The format's own limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

std::optional<DType> FromName(std::string_view name) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.safetensors == name) return facts.dtype;
  }
  return std::nullopt;
}

// What is wrong with a single entry; empty if nothing is.
std::string CheckEntry(const HeaderEntry& entry, std::size_t data_bytes) {
  const auto dtype = FromName(entry.dtype);
  if (!dtype) return StrCat("has dtype \"", entry.dtype, "\", which is not supported");
  if (entry.begin > entry.end || static_cast<std::uint64_t>(entry.end) > data_bytes) {
    return StrCat("lies at bytes ", entry.begin, "..", entry.end, " of ", data_bytes);
  }
  const auto numel = CheckedNumel(entry.shape, SizeOf(*dtype));
  if (!numel || *numel * static_cast<std::int64_t>(SizeOf(*dtype)) != entry.end - entry.begin) {
    return StrCat("is ", *dtype, ShapeText(std::span<const std::int64_t>(entry.shape)),
                  ", but has ", entry.end - entry.begin, " bytes");
  }
  return "";
}

// What is wrong with the entries together: they must cover the data without gaps and have different
// names.
std::string CheckTiling(std::vector<const HeaderEntry*> entries, std::size_t data_bytes) {
  std::unordered_set<std::string_view> names;
  for (const HeaderEntry* entry : entries) {
    if (!names.insert(entry->name).second) {
      return StrCat("tensor \"", entry->name, "\" occurs twice");
    }
  }
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry* a, const HeaderEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::int64_t covered = 0;
  for (const HeaderEntry* entry : entries) {
    if (entry->begin != covered) {
      return StrCat("tensor \"", entry->name, "\" begins at byte ", entry->begin, ", ",
                    entry->begin < covered ? "inside another tensor" : "after a gap");
    }
    covered = entry->end;
  }
  if (static_cast<std::uint64_t>(covered) != data_bytes) {
    return StrCat(data_bytes - static_cast<std::uint64_t>(covered),
                  " bytes at the end belong to no tensor");
  }
  return "";
}

}  // namespace

std::string_view SafetensorsName(DType dtype) {
  const DTypeFacts* facts = FactsOf(dtype);
  return facts == nullptr ? "" : facts->safetensors;
}

Result<std::vector<StoredTensor>> ParseSafetensors(std::span<const std::byte> file,
                                                   std::string_view where, std::size_t most,
                                                   std::string* program) {
  const auto malformed = [&](const auto&... parts) {
    return Error(ErrorCode::kWeightsMalformed,
                 StrCat(where, ": not a valid safetensors file: ", parts...));
  };
  if (file.size() < kLengthBytes) return malformed("it has only ", file.size(), " bytes");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    header_bytes = header_bytes << 8 | std::to_integer<std::uint64_t>(file[i]);
  }
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - kLengthBytes) {
    return malformed("its first 8 bytes say that the header has ", header_bytes,
                     " bytes, but the file has ", file.size());
  }
  const auto header = file.subspan(kLengthBytes, header_bytes);
  const auto data = file.subspan(kLengthBytes + header_bytes);

  std::vector<HeaderEntry> entries;
  HeaderParser parser({reinterpret_cast<const char*>(header.data()), header.size()});
  if (!parser.Parse(entries, most)) return malformed(parser.error());
  if (program != nullptr) *program = parser.metadata(kProgramKey);
  if (entries.size() > most) {
    return Error(ErrorCode::kWeightsMismatch,
                 StrCat(where, ": holds more than ", most,
                        " tensors, far more than the model has; give a file of the model's own"));
  }
  std::vector<const HeaderEntry*> pointers;
  for (const HeaderEntry& entry : entries) {
    const std::string problem = CheckEntry(entry, data.size());
    if (!problem.empty()) return malformed("tensor \"", entry.name, "\" ", problem);
    pointers.push_back(&entry);
  }
  const std::string problem = CheckTiling(std::move(pointers), data.size());
  if (!problem.empty()) return malformed(problem);

  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (HeaderEntry& entry : entries) {
    tensors.push_back({std::move(entry.name), *FromName(entry.dtype), std::move(entry.shape),
                       data.subspan(static_cast<std::size_t>(entry.begin),
                                    static_cast<std::size_t>(entry.end - entry.begin))});
  }
  return tensors;
}

}  // namespace aoti::internal
