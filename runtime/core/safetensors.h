// Reads and writes safetensors files: an 8-byte little-endian length, a JSON header
// of that length, then the tensors' bytes. A file that is read is not trusted.

#ifndef AOTI_RUNTIME_CORE_SAFETENSORS_H_
#define AOTI_RUNTIME_CORE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aoti/dtype.h"
#include "aoti/result.h"

namespace aoti::internal {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> sizes;
  std::span<const std::byte> bytes;  // contiguous elements; of any alignment
};

// The key in a file's metadata under which it may name the program that it was made for: the
// digest that ProgramSpec has.
constexpr std::string_view kProgramKey = "rules_aoti.program";

// The tensors in `file`, in the header's order; their bytes borrow from `file`. The file is refused
// if tensors overlap, if bytes belong to no tensor, if sizes do not match, or if a name occurs
// twice. `where` names the file in errors. A file with more than `most` tensors is refused without
// checking the rest. `program`: receives the value of kProgramKey. Errors: kWeightsMalformed,
// kWeightsMismatch.
Result<std::vector<StoredTensor>> ParseSafetensors(
    std::span<const std::byte> file, std::string_view where,
    std::size_t most = std::numeric_limits<std::size_t>::max(), std::string* program = nullptr);

// A safetensors file with these tensors, whose names must differ, in this order.
std::string ToSafetensors(std::span<const StoredTensor> tensors);

// safetensors' name of a dtype, such as "F32".
std::string_view SafetensorsName(DType dtype);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_SAFETENSORS_H_
