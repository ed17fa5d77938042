#include <cstdio>

#include "runtime/core/safetensors.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

std::string JsonString(std::string_view text) {
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

std::string ToSafetensors(std::span<const StoredTensor> tensors) {
  std::string header = "{";
  std::size_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    if (header.size() > 1) header += ',';
    header += StrCat(JsonString(tensor.name), ":{\"dtype\":\"", SafetensorsName(tensor.dtype),
                     "\",\"shape\":[");
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
      header += StrCat(d > 0 ? "," : "", tensor.sizes[d]);
    }
    const std::size_t end = offset + tensor.bytes.size();
    header += StrCat("],\"data_offsets\":[", offset, ",", end, "]}");
    offset = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the data is aligned

  std::string file;
  file.reserve(8 + header.size() + offset);
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  file += header;
  for (const StoredTensor& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return file;
}

}  // namespace aoti::internal
