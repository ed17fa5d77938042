// A model that has run before asks the system for no more memory.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "models/glass_aoti.h"

namespace {

// The size of the process's address space, in KiB: every mapping counts, used or not.
long AddressSpace() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  long kibibytes = -1;
  while (std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::strncmp(line, "VmSize:", 7) == 0) kibibytes = std::atol(line + 7);
  }
  std::fclose(status);
  return kibibytes;
}

bool Run(const models::GlassAoti& model, std::int64_t length) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int64_t>(i * 7 % 1000);
  auto out = model.Run({.input_ids = {tokens, {1, length}}});
  if (!out.ok()) std::fprintf(stderr, "%s\n", out.error().message().c_str());
  return out.ok();
}

}  // namespace

int main() {
  auto model = models::GlassAoti::Load({.threads = 1});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    for (const std::int64_t length : {128, 64, 1}) {
      if (!Run(*model, length)) return 1;
    }
  }
  const long before = AddressSpace();
  for (int i = 0; i < 50; ++i) {
    for (const std::int64_t length : {1, 128, 64}) {
      if (!Run(*model, length)) return 1;
    }
  }
  const long after = AddressSpace();
  if (before <= 0 || after != before) {
    std::fprintf(stderr, "failed: 150 calls took the address space from %ld to %ld KiB\n", before,
                 after);
    return 1;
  }
  return 0;
}
