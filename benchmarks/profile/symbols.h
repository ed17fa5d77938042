// The names of this program's functions.

#ifndef BENCHMARKS_PROFILE_SYMBOLS_H_
#define BENCHMARKS_PROFILE_SYMBOLS_H_

#include <cstdint>
#include <map>
#include <string>

namespace aoti::benchmark {

class Symbols {
 public:
  // Reads the symbol table of the running program, which must not be stripped. Throws
  // std::runtime_error if it has none.
  static Symbols OfThisProgram();

  // The linker's name of the function at the address; empty for one outside of this program.
  std::string At(std::uintptr_t address) const;

 private:
  struct Function {
    std::uintptr_t size;
    std::string name;
  };
  std::map<std::uintptr_t, Function> functions_;  // by address
};

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_PROFILE_SYMBOLS_H_
