#include "runtime/operators/schema.h"

#include <cstddef>

namespace aoti::internal {
namespace {

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// The end of the list that begins at `begin`, behind its opening bracket.
std::size_t ClosingBracket(std::string_view text, std::size_t begin) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      if (depth-- == 0) return i;
    }
  }
  return text.size();
}

// "Tensor(a!) x", "float by=1.0", "int[2] sizes=[1, 1]", "Tensor"
SchemaArgument ParseArgument(std::string_view text) {
  SchemaArgument argument;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != ' '; ++i) {
    if (text[i] == '(') {  // an alias
      i = ClosingBracket(text, i + 1);
    } else if (text[i] == '[') {  // a list, whose size is no part of its type
      argument.type += "[]";
      i = ClosingBracket(text, i + 1);
    } else {
      argument.type += text[i];
    }
  }
  const std::string_view rest = Trimmed(text.substr(i));
  argument.name = Trimmed(rest.substr(0, rest.find('=')));
  return argument;
}

std::vector<SchemaArgument> ParseList(std::string_view text) {
  std::vector<SchemaArgument> arguments;
  while (!Trimmed(text).empty()) {
    std::size_t end = 0;
    int depth = 0;
    char quote = 0;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (c == ',' && depth == 0) break;
    }
    const std::string_view part = Trimmed(text.substr(0, end));
    if (!part.empty() && part != "*") arguments.push_back(ParseArgument(part));
    text = end < text.size() ? text.substr(end + 1) : std::string_view();
  }
  return arguments;
}

}  // namespace

Schema ParseSchema(std::string_view text) {
  Schema schema;
  const std::size_t open = text.find('(');
  const std::string_view name = Trimmed(text.substr(0, open));
  const std::size_t dot = name.rfind('.');
  schema.name = name.substr(0, dot);
  if (dot != std::string_view::npos) schema.overload = name.substr(dot + 1);
  if (open == std::string_view::npos) return schema;
  const std::size_t close = ClosingBracket(text, open + 1);
  schema.arguments = ParseList(text.substr(open + 1, close - open - 1));
  const std::size_t arrow = text.find("->", close);
  if (arrow == std::string_view::npos) return schema;
  std::string_view results = Trimmed(text.substr(arrow + 2));
  if (!results.empty() && results.front() == '(') {
    results = results.substr(1, ClosingBracket(results, 1) - 1);
  }
  schema.results = ParseList(results);
  return schema;
}

namespace {

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

// A size that varies is an int for the kernel.
std::string Plain(std::string type) {
  const std::string symbolic = "SymInt";
  return type.compare(0, symbolic.size(), symbolic) == 0 ? "int" + type.substr(symbolic.size())
                                                         : type;
}

std::string Compared(const char* what, const std::vector<SchemaArgument>& declared,
                     const std::vector<std::string>& types) {
  if (declared.size() != types.size()) {
    return "its schema has " + std::to_string(declared.size()) + " " + what +
           (declared.size() == 1 ? "" : "s") + ", and its C++ function has " +
           std::to_string(types.size());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].find('?') == 0 || Plain(declared[i].type) == types[i]) continue;
    const std::string name = declared[i].name.empty() ? "" : " (\"" + declared[i].name + "\")";
    return std::string(what) + " " + std::to_string(i + 1) + name + " is " + declared[i].type +
           " in its schema, and " + types[i] +
           " in its C++ function. In C++, int is int64_t, float is double, str is std::string, "
           "int[] is std::vector<int64_t>, and Tensor? is std::optional<Tensor>";
  }
  return {};
}

}  // namespace

std::string TypesProblem(const Schema& schema, std::string_view types) {
  const std::size_t arrow = types.find("->");
  const std::string problem = Compared("argument", schema.arguments, Split(types.substr(0, arrow)));
  if (!problem.empty()) return problem;
  return Compared("result", schema.results, Split(types.substr(arrow + 2)));
}

}  // namespace aoti::internal
