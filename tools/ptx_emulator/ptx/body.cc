#include "tools/ptx_emulator/ptx/body.h"

#include <bit>
#include <cstdlib>

#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

const std::unordered_map<std::string_view, Special>& SpecialRegisters() {
  static const std::unordered_map<std::string_view, Special> kNames = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneId},
      {"%warpid", Special::kWarpId},
      {"%nwarpid", Special::kNwarpId},
      {"%smid", Special::kSmId},
      {"%nsmid", Special::kNsmId},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%clock", Special::kClock},
      {"%clock64", Special::kClock},
      {"%globaltimer", Special::kClock},
      {"%dynamic_smem_size", Special::kDynamicSharedBytes},
  };
  return kNames;
}

}  // namespace

BodyParser::BodyParser(Reader& reader, Kernel& kernel, const Module& module,
                       const std::vector<std::string>& external_shared,
                       const std::vector<Variable>& module_shared)
    : reader_(reader), kernel_(kernel), module_(module), external_shared_(external_shared) {
  for (const Variable& parameter : kernel.parameters) {
    parameters_[parameter.name] = parameter.offset;
  }
  for (const Variable& variable : module_shared) {
    uint64_t offset = AlignUp(kernel_.shared_bytes, variable.alignment);
    shared_[variable.name] = offset;
    kernel_.shared_bytes = static_cast<uint32_t>(offset + variable.bytes);
  }
  kernel_.carry_row = NewRow();
}

void BodyParser::Parse() {
  scopes_.emplace_back();
  while (!scopes_.empty()) {
    const Token& token = reader_.Peek();
    if (reader_.Accept("{")) {
      scopes_.emplace_back();
    } else if (reader_.Accept("}")) {
      scopes_.pop_back();
    } else if (token.Is(".loc") || token.Is(".file")) {
      reader_.SkipLine();
    } else if (token.Is(".pragma")) {
      while (!reader_.Accept(";")) reader_.Next();
    } else if (token.text.starts_with(".")) {
      ParseDeclaration();
    } else if (token.kind == Token::Kind::kName && reader_.Peek(1).Is(":")) {
      labels_[std::string(reader_.Next().text)] = static_cast<uint32_t>(kernel_.code.size());
      reader_.Expect(":");
    } else if (!reader_.Accept(";")) {
      ParseInstruction();
    }
  }
  for (const auto& [index, label] : branches_) {
    auto found = labels_.find(label);
    if (found == labels_.end()) {
      throw ParseError(kernel_.code[index].line, "no label '" + label + "'");
    }
    kernel_.code[index].target = found->second;
  }
  // Dynamic shared memory follows the static one.
  kernel_.shared_bytes = static_cast<uint32_t>(AlignUp(kernel_.shared_bytes, 16));
  for (const auto& [name, row] : external_rows_) {
    kernel_.constants.emplace_back(row, kernel_.shared_bytes);
  }
}

void BodyParser::ParseDeclaration() {
  Token space = reader_.Next();
  if (space.Is(".reg")) {
    ParseRegisters();
    return;
  }
  Variable variable = ParseVariable(reader_);
  reader_.Expect(";");
  auto place = [&](uint32_t& bytes, std::unordered_map<std::string, uint64_t>& names) {
    uint64_t offset = AlignUp(bytes, variable.alignment);
    names[variable.name] = offset;
    bytes = static_cast<uint32_t>(offset + variable.bytes);
  };
  if (space.Is(".shared")) {
    place(kernel_.shared_bytes, shared_);
  } else if (space.Is(".local")) {
    place(kernel_.local_bytes, local_);
  } else if (space.Is(".param")) {
    place(kernel_.frame_bytes, parameters_);
  } else {
    throw ParseError(space.line, "unknown directive '" + std::string(space.text) + "'");
  }
}

void BodyParser::ParseRegisters() {
  reader_.Next();  // The type; the instructions say how the register is used.
  do {
    std::string name(reader_.Next().text);
    if (reader_.Accept("<")) {
      int64_t count = reader_.Integer();
      reader_.Expect(">");
      for (int64_t i = 0; i < count; ++i) {
        scopes_.back().registers[name + std::to_string(i)] = NewRow();
      }
      kernel_.registers += static_cast<int>(count);
    } else {
      scopes_.back().registers[name] = NewRow();
      ++kernel_.registers;
    }
  } while (reader_.Accept(","));
  reader_.Expect(";");
}

int BodyParser::FindRegister(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    auto found = scope->registers.find(name);
    if (found != scope->registers.end()) return found->second;
  }
  return -1;
}

int BodyParser::ConstantRow(uint64_t value) {
  auto [found, is_new] = constant_rows_.emplace(value, 0);
  if (is_new) {
    found->second = NewRow();
    kernel_.constants.emplace_back(found->second, value);
  }
  return found->second;
}

int BodyParser::NameRow(const Token& token) {
  std::string name(token.text);
  if (int row = FindRegister(name); row >= 0) return row;
  if (auto found = named_rows_.find(name); found != named_rows_.end()) return found->second;
  int row = -1;
  if (auto special = SpecialRegisters().find(name); special != SpecialRegisters().end()) {
    row = NewRow();
    kernel_.specials.emplace_back(row, special->second);
  } else if (name == "WARP_SZ") {
    row = ConstantRow(32);
  } else if (auto shared = shared_.find(name); shared != shared_.end()) {
    row = ConstantRow(shared->second);
  } else if (auto local = local_.find(name); local != local_.end()) {
    row = ConstantRow(local->second);
  } else if (std::find(external_shared_.begin(), external_shared_.end(), name) !=
             external_shared_.end()) {
    row = NewRow();
    external_rows_.emplace_back(name, row);
  } else if (module_.globals.contains(name)) {
    row = NewRow();
    kernel_.globals.emplace_back(row, name);
  } else {
    throw ParseError(token.line, "unknown name '" + name + "'");
  }
  named_rows_[name] = row;
  return row;
}

uint64_t BodyParser::Literal(std::string_view text, bool negative) {
  std::string copy(text);
  uint64_t value = 0;
  char* end = nullptr;
  if (copy.size() == 10 && (copy.starts_with("0f") || copy.starts_with("0F"))) {
    value = std::strtoull(copy.c_str() + 2, &end, 16);
    if (negative) value ^= 0x80000000u;
  } else if (copy.size() == 18 && (copy.starts_with("0d") || copy.starts_with("0D"))) {
    value = std::strtoull(copy.c_str() + 2, &end, 16);
    if (negative) value ^= 1ull << 63;
  } else {
    if (copy.back() == 'U') copy.pop_back();
    if (copy.find('.') != std::string::npos) {
      value = std::bit_cast<uint64_t>(std::strtod(copy.c_str(), &end));
      if (negative) value ^= 1ull << 63;
      if (*end == 0) return value;
    }
    bool binary = copy.starts_with("0b");
    value = std::strtoull(copy.c_str() + (binary ? 2 : 0), &end, binary ? 2 : 0);
    if (negative) value = 0 - value;
  }
  if (end == nullptr || *end != 0) {
    throw ParseError(reader_.line(), "unknown number '" + std::string(text) + "'");
  }
  return value;
}

Operand BodyParser::ParseAddress() {
  Operand operand;
  operand.kind = Operand::Kind::kAddress;
  reader_.Expect("[");
  bool first = true;
  while (!reader_.Accept("]")) {
    bool negative = false;
    if (!first && !reader_.Accept("+")) {
      reader_.Expect("-");
      negative = true;
    }
    if (reader_.Accept("-")) negative = !negative;
    Token token = reader_.Next();
    if (token.kind == Token::Kind::kNumber) {
      operand.offset += static_cast<int64_t>(Literal(token.text, negative));
    } else if (auto found = parameters_.find(std::string(token.text));
               found != parameters_.end() && FindRegister(std::string(token.text)) < 0) {
      operand.name = token.text;
      operand.offset += static_cast<int64_t>(found->second);
    } else {
      operand.row = NameRow(token);
    }
    first = false;
  }
  return operand;
}

Operand BodyParser::ParseOperand() {
  const Token& token = reader_.Peek();
  if (token.Is("[")) return ParseAddress();
  Operand operand;
  if (reader_.Accept("{")) {
    operand.kind = Operand::Kind::kVector;
    do {
      operand.rows.push_back(ParseOperand().row);
    } while (reader_.Accept(","));
    reader_.Expect("}");
    return operand;
  }
  if (reader_.Accept("!")) operand.negated = true;
  if (token.Is("_")) {
    reader_.Next();
    return operand;
  }
  bool negative = reader_.Accept("-");
  Token value = reader_.Next();
  if (value.kind == Token::Kind::kNumber) {
    operand.immediate = true;
    operand.decimal = value.text.find('.') != std::string_view::npos;
    operand.offset = static_cast<int64_t>(Literal(value.text, negative));
    operand.row = ConstantRow(static_cast<uint64_t>(operand.offset));
  } else if (value.kind == Token::Kind::kName) {
    operand.row = NameRow(value);
  } else {
    throw ParseError(value.line, "unknown operand '" + std::string(value.text) + "'");
  }
  return operand;
}

void BodyParser::ParseInstruction() {
  Statement statement;
  statement.line = reader_.line();
  if (reader_.Accept("@")) {
    statement.text = "@";
    if (reader_.Accept("!")) {
      statement.guard_negated = true;
      statement.text += "!";
    }
    Token name = reader_.Next();
    statement.text += std::string(name.text) + " ";
    statement.guard = NameRow(name);
  }
  std::string op(reader_.Next().text);
  for (size_t i = 0; !reader_.Peek(i).Is(";") && reader_.Peek(i).kind != Token::Kind::kEnd; ++i) {
    std::string word(reader_.Peek(i).text);
    statement.text += i == 0 ? op + " " + word : (word == "," ? "," : " " + word);
  }
  if (reader_.Peek().Is(";")) statement.text += op;
  for (size_t start = 0, part = 0; start <= op.size(); ++part) {
    size_t end = std::min(op.find('.', start), op.size());
    std::string word = op.substr(start, end - start);
    if (part == 0) {
      statement.opcode = word;
    } else {
      statement.modifiers.push_back(word);
      if (Type type = TypeNamed(word); type != Type::kNone) statement.types.push_back(type);
    }
    start = end + 1;
  }
  if (statement.opcode == "bra") {
    branches_.emplace_back(kernel_.code.size(), reader_.Next().text);
  } else if (statement.opcode == "call") {
    // `call (result), name, (arguments)`: only functions that end the kernel are known.
    while (!reader_.Peek().Is(";")) {
      Token token = reader_.Next();
      if (token.kind == Token::Kind::kName && token.text.starts_with("__")) {
        Operand operand;
        operand.kind = Operand::Kind::kName;
        operand.name = token.text;
        statement.operands.push_back(std::move(operand));
      }
    }
  } else {
    while (!reader_.Peek().Is(";")) {
      Operand operand = ParseOperand();
      // A number with a point is a double; f32 instructions take it as a float.
      if (operand.decimal && !statement.types.empty() && statement.types.front() == Type::kF32) {
        auto value = static_cast<float>(std::bit_cast<double>(operand.offset));
        operand.row = ConstantRow(std::bit_cast<uint32_t>(value));
      }
      statement.operands.push_back(std::move(operand));
      if (reader_.Accept("|")) statement.bar = ParseOperand().row;
      if (!reader_.Accept(",")) break;
    }
  }
  reader_.Expect(";");
  kernel_.code.push_back(Decode(statement));
}

}  // namespace ptx_emulator
