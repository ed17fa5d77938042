#include "examples/cc_classify/inflate.h"

#include <array>
#include <stdexcept>

namespace classify {
namespace {

[[noreturn]] void Fail(const char* what) {
  throw std::runtime_error(std::string("compressed data: ") + what);
}

// Takes bits off the data, the lowest bit of each byte first.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> data) : data_(data) {}

  int Bits(int count) {
    int value = 0;
    for (int i = 0; i < count; ++i) value |= Bit() << i;
    return value;
  }

  int Bit() {
    if (position_ == data_.size() * 8) Fail("ends too early");
    const int bit = data_[position_ / 8] >> (position_ % 8) & 1;
    ++position_;
    return bit;
  }

  void SkipToByte() { position_ = (position_ + 7) / 8 * 8; }

 private:
  std::span<const uint8_t> data_;
  size_t position_ = 0;  // in bits
};

// A canonical Huffman code: shorter codes come first, codes of one length are in order of their
// symbols. So the lengths of all codes say everything.
class HuffmanCode {
 public:
  // lengths[symbol] is the number of bits of its code; 0: it has none.
  explicit HuffmanCode(std::span<const uint8_t> lengths) {
    for (const uint8_t length : lengths) ++count_[length];
    count_[0] = 0;
    int free = 1;  // codes of the current length that are not given away
    for (int length = 1; length <= kMaxLength; ++length) {
      free = 2 * free - count_[length];
      if (free < 0) Fail("bad code lengths");
    }
    std::array<int, kMaxLength + 2> next{};  // where the symbols of each length go
    for (int length = 1; length <= kMaxLength; ++length) {
      next[length + 1] = next[length] + count_[length];
    }
    symbols_.resize(next[kMaxLength + 1]);
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) symbols_[next[lengths[symbol]]++] = static_cast<int>(symbol);
    }
  }

  int Read(BitReader& bits) const {
    int code = 0;   // the bits so far, first bit highest
    int first = 0;  // the first code of this length
    int index = 0;  // ... and the place of its symbol
    for (int length = 1; length <= kMaxLength; ++length) {
      code |= bits.Bit();
      if (code - first < count_[length]) return symbols_[index + code - first];
      index += count_[length];
      first = (first + count_[length]) << 1;
      code <<= 1;
    }
    Fail("a code that stands for nothing");
  }

 private:
  static constexpr int kMaxLength = 15;
  std::array<int, kMaxLength + 1> count_{};
  std::vector<int> symbols_;
};

// The two codes of a block: one for bytes and lengths of copies, one for their distances.
struct BlockCodes {
  HuffmanCode literals, distances;
};

BlockCodes FixedCodes() {
  std::array<uint8_t, 288> literals;
  for (int i = 0; i < 288; ++i) literals[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  std::array<uint8_t, 30> distances;
  distances.fill(5);
  return {HuffmanCode(literals), HuffmanCode(distances)};
}

BlockCodes ReadCodes(BitReader& bits) {
  const int literal_count = bits.Bits(5) + 257;
  const int distance_count = bits.Bits(5) + 1;
  const int length_count = bits.Bits(4) + 4;
  static constexpr int kOrder[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
  std::array<uint8_t, 19> length_lengths{};
  for (int i = 0; i < length_count; ++i) {
    length_lengths[kOrder[i]] = static_cast<uint8_t>(bits.Bits(3));
  }
  const HuffmanCode length_code(length_lengths);

  // The lengths of both codes in one run-length encoded list.
  std::vector<uint8_t> lengths;
  const size_t total = literal_count + distance_count;
  while (lengths.size() < total) {
    const int symbol = length_code.Read(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<uint8_t>(symbol));
    } else if (symbol == 16) {
      if (lengths.empty()) Fail("nothing to repeat");
      lengths.insert(lengths.end(), bits.Bits(2) + 3, uint8_t{lengths.back()});
    } else {
      lengths.insert(lengths.end(), symbol == 17 ? bits.Bits(3) + 3 : bits.Bits(7) + 11, 0);
    }
  }
  if (lengths.size() > total) Fail("too many code lengths");
  const std::span<const uint8_t> all = lengths;
  return {HuffmanCode(all.first(literal_count)), HuffmanCode(all.subspan(literal_count))};
}

// What the decompressed data grows in.
class Output {
 public:
  explicit Output(size_t limit) : limit_(limit) {}

  void Append(uint8_t byte) {
    if (bytes_.size() == limit_) Fail("more data than expected");
    bytes_.push_back(byte);
  }

  void Copy(size_t distance, int length) {
    if (distance > bytes_.size()) Fail("a copy from before the beginning");
    for (int i = 0; i < length; ++i) Append(bytes_[bytes_.size() - distance]);
  }

  std::vector<uint8_t> Take() { return std::move(bytes_); }

 private:
  size_t limit_;
  std::vector<uint8_t> bytes_;
};

void StoredBlock(BitReader& bits, Output& out) {
  bits.SkipToByte();
  const int length = bits.Bits(16);
  if (bits.Bits(16) != (length ^ 0xFFFF)) Fail("bad length of a stored block");
  for (int i = 0; i < length; ++i) out.Append(static_cast<uint8_t>(bits.Bits(8)));
}

void CompressedBlock(BitReader& bits, const BlockCodes& codes, Output& out) {
  static constexpr int kLengthBase[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                          15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                          67, 83, 99, 115, 131, 163, 195, 227, 258};
  static constexpr int kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  constexpr int kEndOfBlock = 256;
  for (;;) {
    const int symbol = codes.literals.Read(bits);
    if (symbol < kEndOfBlock) {
      out.Append(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == kEndOfBlock) return;
    const int entry = symbol - 257;
    if (entry >= 29) Fail("a length that isn't one");
    const int length = kLengthBase[entry] + bits.Bits(kLengthBits[entry]);

    // Distances: 1..4 as they are, then two symbols for each number of extra bits.
    const int code = codes.distances.Read(bits);
    if (code >= 30) Fail("a distance that isn't one");
    const int extra = code < 4 ? 0 : code / 2 - 1;
    const int base = code < 4 ? code + 1 : ((2 + code % 2) << extra) + 1;
    out.Copy(base + bits.Bits(extra), length);
  }
}

}  // namespace

std::vector<uint8_t> Inflate(std::span<const uint8_t> zlib, size_t limit) {
  if (zlib.size() < 2 || (zlib[0] & 0x0F) != 8 || (zlib[0] << 8 | zlib[1]) % 31 != 0 ||
      (zlib[1] & 0x20) != 0) {
    Fail("no zlib header");
  }
  BitReader bits(zlib.subspan(2));
  Output out(limit);
  for (bool last = false; !last;) {
    last = bits.Bit();
    switch (bits.Bits(2)) {
      case 0:
        StoredBlock(bits, out);
        break;
      case 1:
        CompressedBlock(bits, FixedCodes(), out);
        break;
      case 2:
        CompressedBlock(bits, ReadCodes(bits), out);
        break;
      default:
        Fail("a block of unknown type");
    }
  }
  return out.Take();  // a checksum follows; PNG has its own
}

}  // namespace classify
