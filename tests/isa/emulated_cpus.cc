// Says which code of two models this CPU runs, or why it runs none; and which of the slim runtime's
// kernels. The instructions that it may not use are those that the emulator has not got.

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/slim/cpu/cpu.h"
#include "tests/isa/plain.h"
#include "tests/isa/wide.h"

namespace {

template <typename Model>
void Try(const char* name) {
  auto model = Model::Load();
  if (!model.ok()) {
    const bool unsupported = model.error().code() == aoti::ErrorCode::kUnsupportedCpu;
    std::printf("%s: %s: %s\n", name, unsupported ? "UnsupportedCpu" : "another error",
                model.error().message().c_str());
    return;
  }
  std::vector<float> x(3 * 2048);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  auto out = model->Run({.x = {x.data(), {3, 2048}}});
  if (!out.ok()) {
    std::printf("%s: %s\n", name, out.error().message().c_str());
    return;
  }
  float sum = 0;
  for (const float value : out->output.span()) sum += value;
  std::printf("%s: runs %s, %.3f\n", name, std::string(model->model().isa()).c_str(), sum);
}

}  // namespace

int main() {
  const auto level = aoti::slim::CurrentCpuLevel();
  const bool v4 = level == aoti::slim::CpuLevel::kX86V4;
  const bool v3 = level == aoti::slim::CpuLevel::kX86V3;
  std::printf("kernels: %s\n", v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : "baseline");
  Try<tests::isa::Plain>("plain");
  Try<tests::isa::Wide>("wide");
}
