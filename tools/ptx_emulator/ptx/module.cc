// Parses what stands outside of the kernels' bodies.

#include <cstdlib>

#include "tools/ptx_emulator/ptx/body.h"

namespace ptx_emulator {
namespace {

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

void SkipBraces(Reader& reader) {
  reader.Expect("{");
  for (int depth = 1; depth > 0;) {
    Token token = reader.Next();
    if (token.Is("{")) ++depth;
    if (token.Is("}")) --depth;
  }
}

class ModuleParser {
 public:
  explicit ModuleParser(const std::string& source) : reader_(Tokenize(source)) {}

  Module Parse() {
    while (reader_.Peek().kind != Token::Kind::kEnd) ParseDirective();
    if (module_.arch == 0) throw ParseError(1, "no .target: this is no PTX module");
    return std::move(module_);
  }

 private:
  void ParseDirective() {
    Token token = reader_.Peek();
    if (token.Is(".target")) {
      reader_.Next();
      ParseTarget();
      reader_.SkipLine();
    } else if (token.Is(".version") || token.Is(".address_size") || token.Is(".file") ||
               token.Is(".loc")) {
      reader_.SkipLine();
    } else if (token.Is(".section")) {
      while (!reader_.Peek().Is("{")) reader_.Next();
      SkipBraces(reader_);
    } else if (token.Is(".visible") || token.Is(".weak") || token.Is(".common")) {
      reader_.Next();
    } else if (token.Is(".extern")) {
      reader_.Next();
      external_ = true;
    } else if (token.Is(".entry")) {
      reader_.Next();
      ParseEntry();
    } else if (token.Is(".func")) {
      ParseFunction();
    } else if (token.Is(".global") || token.Is(".const") || token.Is(".shared")) {
      ParseVariables();
    } else if (token.Is(";")) {
      reader_.Next();
    } else {
      throw ParseError(token.line, "unknown directive '" + std::string(token.text) + "'");
    }
  }

  void ParseTarget() {
    std::string target(reader_.Peek().text);
    module_.target = target;
    if (target.rfind("sm_", 0) == 0) {
      char* end = nullptr;
      module_.arch = static_cast<int>(std::strtol(target.c_str() + 3, &end, 10));
      module_.arch_specific = *end != 0;
    }
    if (module_.arch == 0) throw ParseError(reader_.line(), "unknown target '" + target + "'");
  }

  void ParseVariables() {
    bool shared = reader_.Peek().Is(".shared");
    reader_.Next();
    Variable variable = ParseVariable(reader_);
    reader_.Expect(";");
    if (shared && external_) {
      external_shared_.push_back(variable.name);
    } else if (shared) {
      shared_.push_back(variable);
    } else {
      module_.globals[variable.name] = variable;
    }
    external_ = false;
  }

  // Declarations such as that of __assertfail; bodies of functions are inlined by Triton.
  void ParseFunction() {
    uint32_t line = reader_.line();
    while (!reader_.Peek().Is(";") && !reader_.Peek().Is("{")) reader_.Next();
    if (reader_.Peek().Is("{")) {
      throw ParseError(line,
                       "the emulator does not know functions with a body (.func); expected "
                       "kernels (.entry) into which they are inlined");
    }
    external_ = false;
  }

  void ParseEntry() {
    Kernel kernel;
    kernel.name = reader_.Next().text;
    if (reader_.Accept("(")) {
      while (!reader_.Accept(")")) {
        reader_.Expect(".param");
        Variable parameter = ParseVariable(reader_);
        parameter.offset = AlignUp(kernel.parameter_bytes, parameter.alignment);
        kernel.parameter_bytes = static_cast<uint32_t>(parameter.offset + parameter.bytes);
        kernel.parameters.push_back(std::move(parameter));
        reader_.Accept(",");
      }
    }
    kernel.frame_bytes = static_cast<uint32_t>(AlignUp(kernel.parameter_bytes, 16));
    while (!reader_.Accept("{")) {
      Token token = reader_.Next();
      if (token.Is(".reqntid") || token.Is(".maxntid")) {
        std::array<uint32_t, 3> threads{1, 1, 1};
        size_t i = 0;
        do {
          threads[i++] = static_cast<uint32_t>(reader_.Integer());
        } while (i < 3 && reader_.Accept(","));
        if (token.Is(".reqntid")) kernel.required_threads = threads;
        kernel.most_threads = threads[0] * threads[1] * threads[2];
      }
    }
    BodyParser(reader_, kernel, module_, external_shared_, shared_).Parse();
    module_.kernels[kernel.name] = std::move(kernel);
  }

  Reader reader_;
  Module module_;
  bool external_ = false;
  std::vector<std::string> external_shared_;
  std::vector<Variable> shared_;
};

}  // namespace

Module ParseModule(const std::string& source) { return ModuleParser(source).Parse(); }

}  // namespace ptx_emulator
