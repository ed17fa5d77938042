#include <cstdlib>

#include "tools/ptx_emulator/ptx/body.h"

namespace ptx_emulator {

Token Reader::Next() {
  Token token = Peek();
  if (token.kind == Token::Kind::kEnd) throw ParseError(token.line, "the text ends too early");
  ++at_;
  return token;
}

bool Reader::Accept(std::string_view word) {
  if (!Peek().Is(word)) return false;
  ++at_;
  return true;
}

void Reader::Expect(std::string_view word) {
  if (Accept(word)) return;
  throw ParseError(
      line(), "expected '" + std::string(word) + "', found '" + std::string(Peek().text) + "'");
}

int64_t Reader::Integer() {
  bool negative = Accept("-");
  Token token = Next();
  if (token.kind != Token::Kind::kNumber) {
    throw ParseError(token.line, "expected a number, found '" + std::string(token.text) + "'");
  }
  auto value = static_cast<int64_t>(std::strtoull(std::string(token.text).c_str(), nullptr, 0));
  return negative ? -value : value;
}

void Reader::SkipLine() {
  uint32_t line = Peek().line;
  while (Peek().kind != Token::Kind::kEnd && Peek().line == line) ++at_;
}

Variable ParseVariable(Reader& reader) {
  Variable variable;
  Type type = Type::kNone;
  uint64_t vector = 1;
  for (;;) {
    Token token = reader.Next();
    if (token.text == ".align") {
      variable.alignment = static_cast<uint64_t>(reader.Integer());
    } else if (token.text == ".v2" || token.text == ".v4") {
      vector = token.text == ".v2" ? 2 : 4;
    } else if (token.text == ".ptr") {
      // `.ptr .global .align 16` says what a pointer points to.
      while (reader.Peek().Is(".global") || reader.Peek().Is(".shared") ||
             reader.Peek().Is(".const") || reader.Peek().Is(".local")) {
        reader.Next();
      }
      if (reader.Accept(".align")) reader.Integer();
    } else if (token.text.front() == '.') {
      type = TypeNamed(token.text.substr(1));
      if (type == Type::kNone) {
        throw ParseError(token.line, "unknown type '" + std::string(token.text) + "'");
      }
    } else {
      variable.name = token.text;
      break;
    }
  }
  uint64_t element = static_cast<uint64_t>(Bytes(type)) * vector;
  variable.bytes = element;
  variable.alignment = std::max(variable.alignment, element);
  bool array = false;
  while (reader.Accept("[")) {
    uint64_t count = reader.Peek().Is("]") ? 0 : static_cast<uint64_t>(reader.Integer());
    reader.Expect("]");
    variable.bytes *= count;
    array = true;
  }
  if (reader.Accept("=")) {
    auto append = [&] {
      uint64_t value = static_cast<uint64_t>(reader.Integer());
      for (uint64_t i = 0; i < element; ++i) {
        variable.contents.push_back(static_cast<uint8_t>(i < 8 ? value >> (8 * i) : 0));
      }
    };
    if (reader.Accept("{")) {
      do {
        append();
      } while (reader.Accept(","));
      reader.Expect("}");
    } else {
      append();
    }
    if (array && variable.bytes == 0) variable.bytes = variable.contents.size();
  }
  return variable;
}

}  // namespace ptx_emulator
