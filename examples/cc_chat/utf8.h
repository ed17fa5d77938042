// UTF-8, read one character at a time, and text that arrives in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chat {

struct Utf8Character {
  enum State {
    kValid,
    kInvalid,    // the bytes can't begin a character, whatever follows
    kTruncated,  // the text ends before the character does
  };
  char32_t code;  // U+FFFD when not valid
  size_t length;  // bytes to go on to the next character, at least 1
  State state;
};

// The first character of a text that isn't empty.
Utf8Character FirstUtf8Character(std::string_view text);

// Makes whole characters of bytes that arrive in arbitrary pieces: a token of a language model may
// be half a character. What is no UTF-8 comes out as U+FFFD.
class Utf8Stream {
 public:
  // Returns the characters that are complete by now.
  std::string Push(std::string_view bytes);

  // Ends the text: returns U+FFFD when a character was left incomplete.
  std::string Finish();

 private:
  std::string held_;
};

}  // namespace chat
