// Files in memory, read-only and shared.

#ifndef AOTI_RUNTIME_CORE_MAPPED_FILE_H_
#define AOTI_RUNTIME_CORE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "aoti/result.h"

namespace aoti::internal {

// A whole file as read-only memory.
class MappedFile {
 public:
  // Maps the file. Loads of one file share one mapping as long as any of them is alive. Writing to
  // the file changes this memory, and truncating it ends the process at the next read; replacing it
  // (rename) is safe. Thread safe.
  // Errors: kWeightsNotFound, kIoError, kInvalidArgument.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  // Reads the file into private memory, which later changes of the file do not affect.
  static Result<std::shared_ptr<const MappedFile>> Read(const std::string& path);

  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_MAPPED_FILE_H_
