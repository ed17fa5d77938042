#include "runtime/core/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace aoti::internal {

static_assert(std::endian::native == std::endian::little,
              "words are read in the byte order of the CPU");

std::uint64_t Digest(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPlace = 0x9e3779b97f4a7c15;  // odd numbers without a pattern
  constexpr std::uint64_t kFirst = 0xbf58476d1ce4e5b9;
  constexpr std::uint64_t kSecond = 0x94d049bb133111eb;
  // A sum, so that the words can be digested independently; a factor depends on each word's index.
  std::uint64_t sum = bytes.size() * kFirst;
  std::uint64_t place = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    place += kPlace;
    word = (word ^ place) * kFirst;
    sum += (word ^ (word >> 32)) * kSecond;
  }
  return sum;
}

}  // namespace aoti::internal
