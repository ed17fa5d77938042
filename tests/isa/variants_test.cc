// A library with the program for several instruction sets runs the best one that the CPU has, and
// each gives the same results.

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/cpu.h"
#include "tests/expect.h"
#include "tests/isa/every.h"

namespace {

std::vector<float> RunOn(std::string_view cpu) {
  aoti::internal::PretendCpu(cpu);
  auto model = tests::isa::Every::Load();
  if (!model.ok()) {
    Expect(false, std::string(cpu) + ": " + model.error().message());
    return {};
  }
  Expect(model->model().isa() == cpu, std::string(cpu) + ": ran " + model->model().isa());
  std::vector<float> x(3 * 2048);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  auto out = model->Run({.x = {x.data(), {3, 2048}}});
  if (!out.ok()) {
    Expect(false, std::string(cpu) + ": " + out.error().message());
    return {};
  }
  return {out->output.span().begin(), out->output.span().end()};
}

}  // namespace

int main() {
  // From the lowest on: what the machine lacks is not run.
  const std::vector<float> expected = RunOn("x86-64");
  Expect(expected.size() == 3 * 32, "a result of 3x32");
  for (const char* isa : {"x86-64-v3", "x86-64-v4"}) {
    aoti::internal::PretendCpu("");
    if (const std::string missing = aoti::internal::MissingOf(isa); !missing.empty()) {
      std::printf("not run: %s, this CPU lacks %s\n", isa, missing.c_str());
      break;
    }
    const std::vector<float> actual = RunOn(isa);
    Expect(actual.size() == expected.size(), "as many numbers");
    for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
      Expect(std::abs(actual[i] - expected[i]) < 1e-5f, std::string(isa) + " differs");
    }
  }
  return failures != 0;
}
