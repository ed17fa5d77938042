#include "examples/cc_chat/utf8.h"

#include <utility>

namespace chat {
namespace {
constexpr std::string_view kReplacement = "\uFFFD";
}

Utf8Character FirstUtf8Character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, Utf8Character::kValid};
  if (lead < 0xC2 || lead > 0xF4) return {0xFFFD, 1, Utf8Character::kInvalid};

  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  unsigned char low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;

  char32_t code = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {0xFFFD, i, Utf8Character::kTruncated};
    if (byte(i) < low || byte(i) > high) return {0xFFFD, i, Utf8Character::kInvalid};
    code = code << 6 | (byte(i) & 0x3F);
    low = 0x80, high = 0xBF;
  }
  return {code, length, Utf8Character::kValid};
}

std::string Utf8Stream::Push(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Character first = FirstUtf8Character(rest);
    if (first.state == Utf8Character::kTruncated) break;
    text += first.state == Utf8Character::kValid ? rest.substr(0, first.length) : kReplacement;
    rest.remove_prefix(first.length);
  }
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::Finish() {
  return std::exchange(held_, "").empty() ? "" : std::string(kReplacement);
}

}  // namespace chat
