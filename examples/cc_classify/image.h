// Pictures, and the formats that they are read from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace classify {

struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from top to bottom, three bytes per pixel

  uint8_t at(int x, int y, int channel) const {
    return rgb[(static_cast<size_t>(y) * width + x) * 3 + channel];
  }
};

// Reads a PNG, PPM or PGM file. Throws std::runtime_error, which names the file.
Image ReadImage(const std::string& path);

// PNG with 8 bits per sample, not interlaced: gray, RGB, or palette, with or without alpha.
// Transparent pixels are laid over white.
Image DecodePng(std::span<const uint8_t> file);

// Binary PPM (P6) and PGM (P5) with values up to 255.
Image DecodePnm(std::span<const uint8_t> file);

}  // namespace classify
