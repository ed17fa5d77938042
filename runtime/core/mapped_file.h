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
  // Maps the file. Loads of one file share one mapping for as long as any of them is alive. Who
  // writes to the file then changes this memory, and who cuts it short ends the process where it
  // reads; replacing it (rename) is fine. Thread safe.
  // Errors: kWeightsNotFound, kIoError, kInvalidArgument.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  // Reads the file into memory of its own: nothing that becomes of the file matters later.
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
