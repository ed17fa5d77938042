// A model's weights in memory.

#ifndef AOTI_RUNTIME_CORE_WEIGHTS_H_
#define AOTI_RUNTIME_CORE_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/buffer.h"
#include "runtime/core/mapped_file.h"

namespace aoti::internal {

// The size of a weight's elements.
std::size_t BytesOf(const WeightSpec& weight);

// The tensors that a program needs, by index in ProgramSpec::weights. Of those that the program
// writes to, these are the values that a session begins with.
class Weights {
 public:
  // Maps the file, or reads it, and compares it with the spec: missing, extra and wrong tensors are
  // listed. Errors: kWeightsNotFound, kWeightsMalformed, kWeightsMismatch, kIoError,
  // kInvalidArgument.
  static Result<Weights> Load(const ProgramSpec& spec, const std::string& path, bool copy);

  // The same for weights that are embedded in the binary.
  static Result<Weights> Embedded(const ProgramSpec& spec);

  // The same for bytes that must outlive the result. `where` names them in errors, such as
  // "weights /a/b".
  static Result<Weights> Borrow(const ProgramSpec& spec, std::span<const std::byte> bytes,
                                const std::string& where);

  // Puts the tensors of another file in place of these: an adapter, which has some of the program's
  // tensors. Errors: as those of Load(); after one, some tensors may be the file's.
  std::optional<Error> Adapt(const ProgramSpec& spec, const std::string& path, bool copy);

  // Memory that must not be written to. Never null, not even for a tensor without elements.
  void* data(std::size_t weight) const { return data_[weight]; }

  // The packed tensor of ProgramSpec::packed[i]; empty if the file has none.
  std::span<const std::byte> packed(std::size_t i) const { return packed_[i]; }

  // Whether `address` lies in the weights' memory.
  bool Contains(const void* address) const;

 private:
  Weights() = default;

  // Takes the tensors of a file. part: whether it need not have all of them.
  std::optional<Error> Add(const ProgramSpec& spec, std::span<const std::byte> bytes,
                           const std::string& where, bool part);

  // Copies these bytes into private memory, or returns them as they are if they are aligned.
  static std::span<const std::byte> Copy(std::span<const std::byte> bytes,
                                         std::vector<Buffer>& copies);
  std::span<const std::byte> InPlace(std::span<const std::byte> bytes, std::size_t alignment);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::span<const std::byte>> regions_;  // of the files, or what is embedded
  std::vector<std::span<const std::byte>> packed_;
  std::vector<Buffer> copies_;
  std::vector<void*> data_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_WEIGHTS_H_
