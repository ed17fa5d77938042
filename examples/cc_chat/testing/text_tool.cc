// Lets a test call the tokenizer: reads one command per line, answers each with one line. Texts and
// bytes are written as hexadecimal digits.
//
//   text HEX         tokens of the text, special tokens as text
//   special HEX      tokens of the text, special tokens recognised
//   bytes TOKEN...   what the tokens stand for
//   stream HEX...    the pieces that Utf8Stream makes of these, and what it gives at the end

#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "examples/cc_chat/gguf.h"
#include "examples/cc_chat/tokenizer.h"
#include "examples/cc_chat/utf8.h"

namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string Answer(const chat::Tokenizer& tokenizer, std::istream& line) {
  using Specials = chat::Tokenizer::Specials;
  std::string command, word, bytes;
  std::ostringstream answer;
  line >> command;
  if (command == "text" || command == "special") {
    line >> word;
    const auto specials = command == "text" ? Specials::kAsText : Specials::kRecognise;
    for (const chat::Token token : tokenizer.Encode(FromHex(word), specials))
      answer << token << ' ';
  } else if (command == "bytes") {
    for (chat::Token token; line >> token;) bytes += tokenizer.Bytes(token);
    answer << ToHex(bytes);
  } else if (command == "stream") {
    chat::Utf8Stream stream;
    while (line >> word) answer << ToHex(stream.Push(FromHex(word))) << ' ';
    answer << ToHex(stream.Finish());
  } else {
    throw std::invalid_argument("unknown command " + command);
  }
  return answer.str();
}

}  // namespace

int main(int, char** argv) {
  const chat::Tokenizer tokenizer(chat::Gguf::Read(argv[1]));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::cout << Answer(tokenizer, words) << std::endl;
  }
}
