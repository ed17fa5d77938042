#include "examples/cc_classify/image.h"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace classify {

Image ReadImage(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": can't open the file");
  const std::string content(std::istreambuf_iterator<char>(in), {});
  if (in.bad() || content.empty()) throw std::runtime_error(path + ": can't read the file");

  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  try {
    if (content.starts_with("\x89PNG")) return DecodePng(bytes);
    if (content.starts_with("P5") || content.starts_with("P6")) return DecodePnm(bytes);
    throw std::runtime_error(content.starts_with("\xFF\xD8")
                                 ? "this is a JPEG file: convert it to PNG"
                                 : "this is no PNG, PPM (P6) or PGM (P5) file: convert it to PNG");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace classify
