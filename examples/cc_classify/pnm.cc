#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>

#include "examples/cc_classify/image.h"

namespace classify {
namespace {

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error("PPM/PGM: " + what); }

// Takes one number of the header off the front; white space and comments may stand before it.
int TakeNumber(std::string_view& text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\v\f"), text.size()));
    if (!text.starts_with('#')) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1 || number > 1 << 24) Fail("bad header");
  text.remove_prefix(end - text.data());
  return number;
}

}  // namespace

Image DecodePnm(std::span<const uint8_t> file) {
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool gray = text.starts_with("P5");
  if (!gray && !text.starts_with("P6")) Fail("only P5 and P6 are supported: convert the file");
  text.remove_prefix(2);
  Image image;
  image.width = TakeNumber(text);
  image.height = TakeNumber(text);
  if (const int maximum = TakeNumber(text); maximum != 255) {
    Fail("the greatest value is " + std::to_string(maximum) + ", must be 255: convert the file");
  }
  text.remove_prefix(text.empty() ? 0 : 1);  // one white space

  const size_t pixels = static_cast<size_t>(image.width) * image.height;
  const size_t expected = pixels * (gray ? 1 : 3);
  if (text.size() < expected) {
    Fail(std::to_string(expected) + " bytes of pixels expected, the file has " +
         std::to_string(text.size()));
  }
  image.rgb.reserve(pixels * 3);
  for (const char value : text.substr(0, expected)) {
    image.rgb.insert(image.rgb.end(), gray ? 3 : 1, static_cast<uint8_t>(value));
  }
  return image;
}

}  // namespace classify
