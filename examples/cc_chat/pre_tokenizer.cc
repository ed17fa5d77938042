#include "examples/cc_chat/pre_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "examples/cc_chat/unicode_table.h"
#include "examples/cc_chat/utf8.h"

namespace chat {
namespace {

enum class Kind { kLetter, kNumber, kSpace, kOther, kEnd };

bool Contains(std::span<const CodePointRange> table, char32_t code) {
  const auto range = std::lower_bound(
      table.begin(), table.end(), code,
      [](const CodePointRange& candidate, char32_t c) { return candidate.last < c; });
  return range != table.end() && range->first <= code;
}

Kind KindOf(char32_t code) {
  if (Contains(kLetters, code)) return Kind::kLetter;
  if (Contains(kNumbers, code)) return Kind::kNumber;
  if (Contains(kWhiteSpace, code)) return Kind::kSpace;
  return Kind::kOther;
}

// A text as characters: the kind of each, and where it begins.
struct Characters {
  explicit Characters(std::string_view text) {
    for (size_t offset = 0; offset < text.size();) {
      const Utf8Character character = FirstUtf8Character(text.substr(offset));
      kinds.push_back(KindOf(character.code));
      offsets.push_back(offset);
      offset += character.length;
    }
    kinds.push_back(Kind::kEnd);
    offsets.push_back(text.size());
  }

  // The end of the run of characters of one kind that begins at i.
  size_t RunEnd(size_t i) const {
    const Kind kind = kinds[i];
    while (kinds[i] == kind) ++i;
    return i;
  }

  std::vector<Kind> kinds;
  std::vector<size_t> offsets;
};

// How long the contraction at the begin of the text is: 0 when there is none.
size_t ContractionLength(std::string_view text) {
  for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(suffix)) return suffix.size();
  }
  return 0;
}

// The end of the word that begins at character i.
size_t WordEnd(std::string_view text, const Characters& characters, size_t i) {
  const auto& kinds = characters.kinds;
  if (kinds[i] == Kind::kNumber) return i + 1;

  const std::string_view rest = text.substr(characters.offsets[i]);
  if (const size_t length = ContractionLength(rest)) return i + length;

  const size_t body = rest[0] == ' ' ? i + 1 : i;  // a word may begin with one space
  if (kinds[body] == Kind::kLetter || kinds[body] == Kind::kOther) return characters.RunEnd(body);

  // White space. Its last character is left to the word that follows, if one does: numbers stand
  // alone, so they don't count.
  const size_t end = characters.RunEnd(i);
  const bool word_follows = kinds[end] == Kind::kLetter || kinds[end] == Kind::kOther;
  return word_follows && end - i > 1 ? end - 1 : end;
}

}  // namespace

std::vector<std::string_view> PreTokenize(std::string_view text) {
  const Characters characters(text);
  std::vector<std::string_view> words;
  for (size_t i = 0; characters.kinds[i] != Kind::kEnd;) {
    const size_t end = WordEnd(text, characters, i);
    const size_t begin_byte = characters.offsets[i];
    words.push_back(text.substr(begin_byte, characters.offsets[end] - begin_byte));
    i = end;
  }
  return words;
}

}  // namespace chat
