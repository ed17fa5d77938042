// Decompression of zlib data (RFC 1950 and 1951).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace classify {

// Throws std::runtime_error when the data is damaged, or gives more than `limit` bytes.
std::vector<uint8_t> Inflate(std::span<const uint8_t> zlib, size_t limit);

}  // namespace classify
