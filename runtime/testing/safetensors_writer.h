// Writes safetensors files.

#ifndef AOTI_RUNTIME_TESTING_SAFETENSORS_WRITER_H_
#define AOTI_RUNTIME_TESTING_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aoti/dtype.h"

namespace aoti::testing {

class SafetensorsWriter {
 public:
  // Copies a contiguous tensor. Returns false if there is already a tensor with that name.
  bool Add(const std::string& name, DType dtype, std::vector<std::int64_t> sizes, const void* data);

  // Returns false if the file could not be written.
  bool Write(const std::string& path) const;

 private:
  struct Entry {
    DType dtype;
    std::vector<std::int64_t> sizes;
    std::string bytes;
  };

  std::map<std::string, Entry> entries_;
};

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTING_SAFETENSORS_WRITER_H_
