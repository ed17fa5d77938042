// The words of a PTX text, each with its line.

#ifndef PTX_EMULATOR_PTX_TOKENS_H_
#define PTX_EMULATOR_PTX_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptx_emulator {

struct Token {
  enum class Kind { kName, kNumber, kString, kMark, kEnd };

  Kind kind = Kind::kEnd;
  std::string_view text;
  uint32_t line = 0;

  bool Is(std::string_view word) const { return kind != Kind::kString && text == word; }
};

// Splits `source`, which must outlive the tokens. The last token is kEnd. Throws ParseError.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_TOKENS_H_
