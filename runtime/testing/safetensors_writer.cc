#include "runtime/testing/safetensors_writer.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "runtime/core/safetensors.h"

namespace aoti::testing {
namespace {

std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      json += escape;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

}  // namespace

bool SafetensorsWriter::Add(const std::string& name, DType dtype, std::vector<std::int64_t> sizes,
                            const void* data) {
  std::size_t bytes = SizeOf(dtype);
  for (const std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
  std::string copy = bytes > 0 ? std::string(static_cast<const char*>(data), bytes) : "";
  return entries_.emplace(name, Entry{dtype, std::move(sizes), std::move(copy)}).second;
}

bool SafetensorsWriter::Write(const std::string& path) const {
  std::string header = "{";
  std::size_t offset = 0;
  for (const auto& [name, entry] : entries_) {
    if (header.size() > 1) header += ",";
    header += JsonString(name) + ":{\"dtype\":\"" +
              std::string(internal::SafetensorsName(entry.dtype)) + "\",\"shape\":[";
    for (std::size_t d = 0; d < entry.sizes.size(); ++d) {
      header += (d > 0 ? "," : "") + std::to_string(entry.sizes[d]);
    }
    header += "],\"data_offsets\":[" + std::to_string(offset) + ",";
    offset += entry.bytes.size();
    header += std::to_string(offset) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the data is aligned

  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(header.size() >> (8 * i) & 0xff));
  file << header;
  for (const auto& [name, entry] : entries_) file << entry.bytes;
  file.close();
  return file.good();
}

}  // namespace aoti::testing
