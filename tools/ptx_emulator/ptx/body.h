// Parses the body of one kernel.

#ifndef PTX_EMULATOR_PTX_BODY_H_
#define PTX_EMULATOR_PTX_BODY_H_

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/ptx_emulator/ptx/program.h"
#include "tools/ptx_emulator/ptx/statement.h"
#include "tools/ptx_emulator/ptx/tokens.h"

namespace ptx_emulator {

// A position in the tokens of a module.
class Reader {
 public:
  explicit Reader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token Next();
  bool Accept(std::string_view word);
  void Expect(std::string_view word);
  int64_t Integer();
  void SkipLine();
  uint32_t line() const { return Peek().line; }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// `.align 16 .b8 name[64]` after the space: the type, the name, the size, and what it contains.
Variable ParseVariable(Reader& reader);

class BodyParser {
 public:
  BodyParser(Reader& reader, Kernel& kernel, const Module& module,
             const std::vector<std::string>& external_shared,
             const std::vector<Variable>& module_shared);

  // Reads up to the closing brace.
  void Parse();

 private:
  struct Scope {
    std::unordered_map<std::string, int> registers;
  };

  void ParseDeclaration();
  void ParseRegisters();
  void ParseInstruction();
  Operand ParseOperand();
  Operand ParseAddress();
  int NameRow(const Token& token);
  int ConstantRow(uint64_t value);
  int FindRegister(const std::string& name) const;
  int NewRow() { return kernel_.rows++; }
  uint64_t Literal(std::string_view text, bool negative);

  Reader& reader_;
  Kernel& kernel_;
  const Module& module_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string, uint64_t> shared_;      // Offsets.
  std::unordered_map<std::string, uint64_t> local_;       // Offsets.
  std::unordered_map<std::string, uint64_t> parameters_;  // Offsets in the frame.
  std::unordered_map<std::string, int> named_rows_;
  std::map<uint64_t, int> constant_rows_;
  std::vector<std::string> external_shared_;
  std::vector<std::pair<std::string, int>> external_rows_;
  std::unordered_map<std::string, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_PTX_BODY_H_
