#include "runtime/core/safetensors_header.h"

#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

void AppendUtf8(std::uint32_t code_point, std::string& out) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xc0 | (code_point >> 6));
    byte(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    byte(0xe0 | (code_point >> 12));
    byte(0x80 | ((code_point >> 6) & 0x3f));
    byte(0x80 | (code_point & 0x3f));
  } else {
    byte(0xf0 | (code_point >> 18));
    byte(0x80 | ((code_point >> 12) & 0x3f));
    byte(0x80 | ((code_point >> 6) & 0x3f));
    byte(0x80 | (code_point & 0x3f));
  }
}

}  // namespace

bool HeaderParser::Parse(std::vector<HeaderEntry>& entries, std::size_t most) {
  if (!Expect('{')) return false;
  if (!Accept('}')) {
    do {
      std::string name;
      if (!ParseString(name) || !Expect(':')) return false;
      if (name == "__metadata__") {
        if (!ParseMetadata()) return false;
        continue;
      }
      HeaderEntry entry;
      entry.name = std::move(name);
      if (!ParseEntry(entry)) return false;
      entries.push_back(std::move(entry));
      if (entries.size() > most) return true;
    } while (Accept(','));
    if (!Expect('}')) return false;
  }
  SkipSpace();
  return at_ == text_.size() || Fail("something follows the closing brace");
}

bool HeaderParser::ParseEntry(HeaderEntry& entry) {
  bool dtype = false;
  bool shape = false;
  bool offsets = false;
  if (!Expect('{')) return false;
  do {
    std::string key;
    if (!ParseString(key) || !Expect(':')) return false;
    if (key == "dtype" && !std::exchange(dtype, true)) {
      if (!ParseString(entry.dtype)) return false;
    } else if (key == "shape" && !std::exchange(shape, true)) {
      if (!ParseInts(entry.shape)) return false;
    } else if (key == "data_offsets" && !std::exchange(offsets, true)) {
      std::vector<std::int64_t> ends;
      if (!ParseInts(ends)) return false;
      if (ends.size() != 2) return Fail("data_offsets is not a pair");
      entry.begin = ends[0];
      entry.end = ends[1];
    } else {
      return Fail(StrCat("unknown or repeated key \"", key, "\""));
    }
  } while (Accept(','));
  if (!Expect('}')) return false;
  return (dtype && shape && offsets) ||
         Fail(StrCat("tensor \"", entry.name, "\" lacks dtype, shape or data_offsets"));
}

bool HeaderParser::ParseMetadata() {
  if (!Expect('{')) return false;
  if (Accept('}')) return true;
  do {
    auto& [key, value] = metadata_.emplace_back();
    if (!ParseString(key) || !Expect(':') || !ParseString(value)) return false;
  } while (Accept(','));
  return Expect('}');
}

std::string HeaderParser::metadata(std::string_view key) const {
  for (auto entry = metadata_.rbegin(); entry != metadata_.rend(); ++entry) {
    if (entry->first == key) return entry->second;
  }
  return "";
}

bool HeaderParser::ParseString(std::string& out) {
  out.clear();
  if (!Expect('"')) return false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return Fail("control character in a string");
    if (c != '\\') {
      out += c;
    } else if (!ParseEscape(out)) {
      return false;
    }
  }
  return Fail("a string does not end");
}

bool HeaderParser::ParseEscape(std::string& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (at_ == text_.size()) return Fail("a string does not end");
  const char c = text_[at_++];
  if (const std::size_t i = kEscapes.find(c); i != std::string_view::npos) {
    out += kMeanings[i];
    return true;
  }
  std::uint32_t unit;
  if (c != 'u' || !ParseHex4(unit)) return Fail("bad escape in a string");
  if (unit >= 0xdc00 && unit < 0xe000) return Fail("bad escape in a string");
  if (unit >= 0xd800 && unit < 0xdc00) {  // the first half of a surrogate pair
    std::uint32_t low;
    if (text_.substr(at_, 2) != "\\u") return Fail("bad escape in a string");
    at_ += 2;
    if (!ParseHex4(low) || low < 0xdc00 || low >= 0xe000) return Fail("bad escape in a string");
    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(unit, out);
  return true;
}

bool HeaderParser::ParseHex4(std::uint32_t& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return false;
    out = out * 16 + static_cast<std::uint32_t>(digit);
  }
  return true;
}

// Reads sizes and offsets, which have no sign, fraction or exponent.
bool HeaderParser::ParseInt(std::int64_t& out) {
  SkipSpace();
  const std::size_t start = at_;
  out = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    if (__builtin_mul_overflow(out, 10, &out) ||
        __builtin_add_overflow(out, text_[at_] - '0', &out)) {
      return Fail("a number is too large");
    }
    ++at_;
  }
  return at_ > start || Fail("expected a number that is not negative");
}

bool HeaderParser::ParseInts(std::vector<std::int64_t>& out) {
  out.clear();
  if (!Expect('[')) return false;
  if (Accept(']')) return true;
  do {
    std::int64_t value;
    if (!ParseInt(value)) return false;
    out.push_back(value);
  } while (Accept(','));
  return Expect(']');
}

void HeaderParser::SkipSpace() {
  while (at_ < text_.size() &&
         std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) {
    ++at_;
  }
}

bool HeaderParser::Peek(char c) {
  SkipSpace();
  return at_ < text_.size() && text_[at_] == c;
}

bool HeaderParser::Accept(char c) {
  if (!Peek(c)) return false;
  ++at_;
  return true;
}

bool HeaderParser::Expect(char c) {
  return Accept(c) || Fail(StrCat("expected '", std::string(1, c), "'"));
}

bool HeaderParser::Fail(std::string_view why) {
  if (error_.empty()) error_ = StrCat("header, byte ", at_, ": ", why);
  return false;
}

}  // namespace aoti::internal
