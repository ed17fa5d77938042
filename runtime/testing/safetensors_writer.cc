#include "runtime/testing/safetensors_writer.h"

#include <fstream>
#include <span>
#include <utility>

#include "runtime/core/safetensors.h"

namespace aoti::testing {

bool SafetensorsWriter::Add(const std::string& name, DType dtype, std::vector<std::int64_t> sizes,
                            const void* data) {
  std::size_t bytes = SizeOf(dtype);
  for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  std::string copy = bytes > 0 ? std::string(static_cast<const char*>(data), bytes) : "";
  return entries_.emplace(name, Entry{dtype, std::move(sizes), std::move(copy)}).second;
}

bool SafetensorsWriter::Write(const std::string& path) const {
  std::vector<internal::StoredTensor> tensors;
  for (const auto& [name, entry] : entries_) {
    tensors.push_back({name, entry.dtype, entry.sizes, std::as_bytes(std::span(entry.bytes))});
  }
  std::ofstream file(path, std::ios::binary);
  file << internal::ToSafetensors(tensors);
  file.close();
  return file.good();
}

}  // namespace aoti::testing
