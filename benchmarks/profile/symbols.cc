#include "benchmarks/profile/symbols.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace aoti::benchmark {
namespace {

// What the system added to all of the program's addresses.
std::uintptr_t Base() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  return base;
}

}  // namespace

Symbols Symbols::OfThisProgram() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + header->e_shoff);
  Symbols symbols;
  const std::uintptr_t base = Base();
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = file.data() + sections[sections[i].sh_link].sh_offset;
    const auto* entries = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(*entries); ++s) {
      const int type = ELF64_ST_TYPE(entries[s].st_info);
      if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
      symbols.functions_[base + entries[s].st_value] = {entries[s].st_size,
                                                        names + entries[s].st_name};
    }
  }
  if (symbols.functions_.empty()) throw std::runtime_error("this program has no symbol table");
  return symbols;
}

std::string Symbols::At(std::uintptr_t address) const {
  auto next = functions_.upper_bound(address);
  if (next == functions_.begin()) return "";
  const auto& [start, function] = *--next;
  return address < start + function.size ? function.name : "";
}

}  // namespace aoti::benchmark
