// A model's weights in memory.

#ifndef AOTI_RUNTIME_CORE_WEIGHTS_H_
#define AOTI_RUNTIME_CORE_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/buffer.h"
#include "runtime/core/mapped_file.h"

namespace aoti::internal {

// The tensors that a program wants, by the index of ProgramSpec::weights: in the file's own
// mapping, or in private memory where the program writes to them.
class Weights {
 public:
  // Maps the file and compares it with the spec: each missing, extra or wrong tensor is listed.
  // Errors: kWeightsNotFound, kWeightsMalformed, kWeightsMismatch, kIoError.
  static Result<Weights> Load(const ProgramSpec& spec, const std::string& path);

  // Read-only memory unless the weight is mutated. Never null, not even for a tensor without
  // elements.
  void* data(std::size_t weight) const { return data_[weight]; }

  // Whether `address` lies in the weights' memory.
  bool Contains(const void* address) const;

 private:
  Weights() = default;

  // Empty when the program has no weights: then no file is needed.
  std::shared_ptr<const MappedFile> file_;
  std::vector<Buffer> copies_;
  std::vector<void*> data_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_WEIGHTS_H_
