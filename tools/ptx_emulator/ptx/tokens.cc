#include "tools/ptx_emulator/ptx/tokens.h"

#include <algorithm>
#include <cctype>

#include "tools/ptx_emulator/ptx/program.h"

namespace ptx_emulator {
namespace {

bool StartsName(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

bool ContinuesName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.';
}

}  // namespace

std::vector<Token> Tokenize(std::string_view source) {
  std::vector<Token> tokens;
  uint32_t line = 1;
  size_t at = 0;
  auto add = [&](Token::Kind kind, size_t end) {
    tokens.push_back({kind, source.substr(at, end - at), line});
    at = end;
  };
  while (at < source.size()) {
    char c = source[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
    } else if (source.substr(at, 2) == "//") {
      at = std::min(source.find('\n', at), source.size());
    } else if (source.substr(at, 2) == "/*") {
      size_t end = source.find("*/", at + 2);
      if (end == std::string_view::npos) throw ParseError(line, "a comment without its end");
      line += static_cast<uint32_t>(std::count(source.begin() + at, source.begin() + end, '\n'));
      at = end + 2;
    } else if (c == '"') {
      size_t end = source.find('"', at + 1);
      if (end == std::string_view::npos) throw ParseError(line, "a string without its end");
      add(Token::Kind::kString, end + 1);
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      size_t end = at;
      while (end < source.size() && ContinuesName(source[end])) ++end;
      add(Token::Kind::kNumber, end);
    } else if (StartsName(c)) {
      size_t end = at + 1;
      while (end < source.size()) {
        if (ContinuesName(source[end])) {
          ++end;
        } else if (source.substr(end, 2) == "::") {
          end += 2;
        } else {
          break;
        }
      }
      add(Token::Kind::kName, end);
    } else {
      add(Token::Kind::kMark, at + 1);
    }
  }
  tokens.push_back({Token::Kind::kEnd, {}, line});
  return tokens;
}

}  // namespace ptx_emulator
