#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "examples/cc_classify/image.h"
#include "examples/cc_classify/inflate.h"

namespace classify {
namespace {

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error("PNG: " + what); }

uint32_t BigEndian(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

uint32_t Crc32(std::span<const uint8_t> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t entry = i;
      for (int bit = 0; bit < 8; ++bit) entry = entry >> 1 ^ (entry & 1 ? 0xEDB88320u : 0);
      entries[i] = entry;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF];
  return ~crc;
}

struct Chunk {
  std::string_view type;
  std::span<const uint8_t> data;
};

// Takes one chunk off the front of the file: length, type, data, checksum.
Chunk TakeChunk(std::span<const uint8_t>& file) {
  if (file.size() < 12 || BigEndian(file) > file.size() - 12) Fail("the file ends too early");
  const uint32_t length = BigEndian(file);
  const auto checked = file.subspan(4, length + 4);
  if (BigEndian(file.subspan(8 + length)) != Crc32(checked)) Fail("the file is damaged (checksum)");
  file = file.subspan(12 + length);
  return {{reinterpret_cast<const char*>(checked.data()), 4}, checked.subspan(4)};
}

struct Header {
  explicit Header(std::span<const uint8_t> data) {
    if (data.size() != 13) Fail("bad header");
    width = BigEndian(data);
    height = BigEndian(data.subspan(4));
    color = static_cast<Color>(data[9]);
    if (width == 0 || height == 0 || width > kMaxPixels / height) {
      Fail("the size is " + std::to_string(width) + " x " + std::to_string(height));
    }
    if (data[8] != 8) {
      Fail(std::to_string(data[8]) + " bits per sample; only 8 are supported: convert the file");
    }
    if (data[12] != 0) Fail("interlaced, which is not supported: convert the file");
    if (data[10] != 0 || data[11] != 0 || channels() == 0) Fail("bad header");
  }

  static constexpr size_t kMaxPixels = size_t{1} << 28;

  enum Color : uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

  size_t channels() const {
    switch (color) {
      case kGray:
      case kPalette:
        return 1;
      case kGrayAlpha:
        return 2;
      case kRgb:
        return 3;
      case kRgba:
        return 4;
    }
    return 0;
  }

  size_t row_bytes() const { return width * channels(); }

  size_t width, height;
  Color color;
};

// The one of left, above, and upper left that is nearest to left + above - upper left.
int Paeth(int left, int above, int upper_left) {
  const int to_left = std::abs(above - upper_left);
  const int to_above = std::abs(left - upper_left);
  const int to_upper_left = std::abs(left + above - 2 * upper_left);
  if (to_left <= to_above && to_left <= to_upper_left) return left;
  return to_above <= to_upper_left ? above : upper_left;
}

// Rows come as differences to a prediction from their neighbours; each row begins with the number
// of the prediction. Undoes this in place, and takes those numbers out.
std::vector<uint8_t> Unfilter(std::span<const uint8_t> data, const Header& header) {
  const size_t row_bytes = header.row_bytes(), step = header.channels();
  std::vector<uint8_t> pixels(header.height * row_bytes);
  for (size_t y = 0; y < header.height; ++y) {
    const uint8_t filter = data[y * (row_bytes + 1)];
    const uint8_t* in = &data[y * (row_bytes + 1) + 1];
    uint8_t* row = &pixels[y * row_bytes];
    for (size_t i = 0; i < row_bytes; ++i) {
      const int left = i >= step ? row[i - step] : 0;
      const int above = y > 0 ? row[i - row_bytes] : 0;
      const int upper_left = i >= step && y > 0 ? row[i - row_bytes - step] : 0;
      int prediction = 0;
      switch (filter) {
        case 0:
          break;
        case 1:
          prediction = left;
          break;
        case 2:
          prediction = above;
          break;
        case 3:
          prediction = (left + above) / 2;
          break;
        case 4:
          prediction = Paeth(left, above, upper_left);
          break;
        default:
          Fail("unknown filter " + std::to_string(filter));
      }
      row[i] = static_cast<uint8_t>(in[i] + prediction);
    }
  }
  return pixels;
}

struct Rgba {
  uint8_t r, g, b, a;
};

// The colors of the palette; empty without one. `alphas` may be shorter than the palette.
std::vector<Rgba> Palette(std::span<const uint8_t> colors, std::span<const uint8_t> alphas) {
  std::vector<Rgba> palette;
  for (size_t i = 0; 3 * i + 2 < colors.size(); ++i) {
    const uint8_t alpha = i < alphas.size() ? alphas[i] : 255;
    palette.push_back({colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], alpha});
  }
  return palette;
}

Rgba PixelColor(const uint8_t* p, Header::Color color, const std::vector<Rgba>& palette) {
  switch (color) {
    case Header::kGray:
      return {p[0], p[0], p[0], 255};
    case Header::kGrayAlpha:
      return {p[0], p[0], p[0], p[1]};
    case Header::kRgb:
      return {p[0], p[1], p[2], 255};
    case Header::kRgba:
      return {p[0], p[1], p[2], p[3]};
    case Header::kPalette:
      break;
  }
  if (p[0] >= palette.size()) Fail("a color that is not in the palette");
  return palette[p[0]];
}

uint8_t OverWhite(uint8_t color, uint8_t alpha) {
  return static_cast<uint8_t>((color * alpha + 255 * (255 - alpha) + 127) / 255);
}

}  // namespace

Image DecodePng(std::span<const uint8_t> file) {
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1A\n";
  if (!std::string_view(reinterpret_cast<const char*>(file.data()), file.size())
           .starts_with(kSignature)) {
    Fail("no PNG signature");
  }
  file = file.subspan(kSignature.size());

  const Chunk first = TakeChunk(file);
  if (first.type != "IHDR") Fail("the header is missing");
  const Header header(first.data);

  std::vector<uint8_t> compressed;
  std::span<const uint8_t> colors, alphas;
  for (Chunk chunk = TakeChunk(file); chunk.type != "IEND"; chunk = TakeChunk(file)) {
    if (chunk.type == "IDAT") {
      compressed.insert(compressed.end(), chunk.data.begin(), chunk.data.end());
    } else if (chunk.type == "PLTE") {
      colors = chunk.data;
    } else if (chunk.type == "tRNS" && header.color == Header::kPalette) {
      alphas = chunk.data;
    }
  }

  const size_t expected = header.height * (header.row_bytes() + 1);
  const std::vector<uint8_t> filtered = Inflate(compressed, expected);
  if (filtered.size() != expected) Fail("the file has too few pixels");
  const std::vector<uint8_t> pixels = Unfilter(filtered, header);

  const std::vector<Rgba> palette = Palette(colors, alphas);
  Image image{static_cast<int>(header.width), static_cast<int>(header.height), {}};
  image.rgb.reserve(header.width * header.height * 3);
  for (size_t i = 0; i < pixels.size(); i += header.channels()) {
    const Rgba color = PixelColor(&pixels[i], header.color, palette);
    for (const uint8_t channel : {color.r, color.g, color.b}) {
      image.rgb.push_back(OverWhite(channel, color.a));
    }
  }
  return image;
}

}  // namespace classify
