// Models on the slim runtime, on libtorch, and on libtorch because slim lacks an operator, in one
// process: each calls its own library.

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/expect.h"
#include "tests/shims/not_covered.h"
#include "tests/shims/on_libtorch.h"
#include "tests/shims/on_slim.h"

namespace {

// Libraries in this process whose name has `part` in it.
int Loaded(std::string_view part) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    found += std::string_view(line).find(part) != std::string_view::npos;
  }
  std::fclose(maps);
  return found;
}

template <class Model>
std::vector<float> Scores(const char* name) {
  auto model = Model::Load();
  if (!model.ok()) {
    Expect(false, std::string(name) + ": " + model.error().message());
    return {};
  }
  std::vector<float> x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  auto out = model->Run({.x = {x.data(), {3, 8}}});
  if (!out.ok()) {
    Expect(false, std::string(name) + ": " + out.error().message());
    return {};
  }
  return {out->output.span().begin(), out->output.span().end()};
}

}  // namespace

int main() {
  const std::vector<float> slim = Scores<tests::shims::OnSlim>("on_slim");
  const std::vector<float> libtorch = Scores<tests::shims::OnLibtorch>("on_libtorch");
  Expect(slim.size() == 9 && libtorch.size() == 9, "three scores for each of three rows");
  for (std::size_t i = 0; i < slim.size() && i < libtorch.size(); ++i) {
    Expect(std::abs(slim[i] - libtorch[i]) < 1e-6f, "score " + std::to_string(i));
  }

  auto factors = tests::shims::NotCovered::Load();
  Expect(factors.ok(), factors.ok() ? "" : factors.error().message());
  if (factors.ok()) {
    Expect(Loaded("not_covered.libtorch/") > 0, "the program's own library is not loaded");
    std::vector<float> x(16);
    for (std::size_t i = 0; i < 4; ++i) x[i * 5] = static_cast<float>(i);
    auto out = factors->Run({.x = {x.data(), {4, 4}}});
    Expect(out.ok(), out.ok() ? "" : out.error().message());
    for (std::size_t i = 0; out.ok() && i < 4; ++i) {
      Expect(std::abs(out->output.data()[i * 5] - std::sqrt(static_cast<float>(i * i + 1))) < 1e-5f,
             "row " + std::to_string(i));
    }
  }
  return failures != 0;
}
