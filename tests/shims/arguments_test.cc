// Numbers among the arguments: plain fields, which are checked in every call.

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/expect.h"
#include "tests/shims/sampler.h"

namespace {

using tests::shims::Sampler;

static_assert(std::is_same_v<decltype(Sampler::Inputs::k), std::int64_t>);
static_assert(std::is_same_v<decltype(Sampler::Inputs::temperature), double>);

std::string ErrorOf(const Sampler& model, const Sampler::Inputs& inputs) {
  auto out = model.Run(inputs);
  return out.ok() ? "no error" : std::string(out.error().message());
}

void ExpectText(const std::string& got, const std::string& want) { Expect(got == want, got); }

void Test() {
  auto model = Sampler::Load();
  if (!model.ok()) return Expect(false, model.error().message());
  std::vector<float> x(16, 0.0f);
  x[3] = -2.0f;
  x[5] = -1.0f;
  const aoti::TensorRef<const float, 2> row = {x, {1, 16}};

  auto out = model->Run({.x = row, .k = 2, .temperature = 0.5});
  if (!out.ok()) return Expect(false, out.error().message());
  Expect(out->output_0.size(1) == 2, "as many values as k says");
  const double sum = 14 + std::exp(-2.0) + std::exp(-4.0);
  Expect(std::abs(out->output_0(0, 0) - std::exp(-4.0) / sum) < 1e-6, "the least likely");
  Expect(out->output_1(0, 0) == 1.5f && out->output_1(0, 1) == 2.5f, "an index times a float");

  auto by_default = model->Run({.x = row, .k = 1});
  Expect(by_default.ok() && by_default->output_1(0, 0) == 3.0f, "the default of forward()");
  auto shifted = model->Run({.x = row, .k = 1, .shift = -2});
  Expect(shifted.ok() && shifted->output_1(0, 0) == 1.0f, "a negative number");

  ExpectText(ErrorOf(*model, {.x = row}), "sampler: input \"k\": not given, must be int");
  ExpectText(ErrorOf(*model, {.x = row, .k = 17}),
             "sampler: input \"k\": value is 17, must be in 1..16");
  ExpectText(ErrorOf(*model, {.x = row, .k = 1, .shift = -4}),
             "sampler: input \"shift\": value is -4, must be in -3..3");
  ExpectText(ErrorOf(*model, {.x = row, .k = 1, .temperature = 0}),
             "sampler: input \"temperature\": value is 0, must be in 0.1..2");
  ExpectText(
      ErrorOf(*model, {.x = row, .k = 1, .temperature = std::numeric_limits<double>::quiet_NaN()}),
      "sampler: input \"temperature\": value is nan, must be in 0.1..2");

  std::vector<float> rows(3 * 16, 0.0f);
  auto three = model->Run({.x = {rows, {3, 16}}, .k = 2});
  Expect(three.ok() && three->output_0.size(0) == 3, "a size of 1..15 step 2");
  ExpectText(ErrorOf(*model, {.x = {std::span(rows).first(32), {2, 16}}, .k = 2}),
             "sampler: input \"x\": dim 0 (batch) is 2, must be 2*batch_steps + 1 for an integer "
             "batch_steps");
  ExpectText(ErrorOf(*model, {.x = {std::vector<float>(17 * 16), {17, 16}}, .k = 2}),
             "sampler: input \"x\": dim 0 (batch) is 17, must be in 1..15");
}

}  // namespace

int main() {
  Test();
  return failures != 0;
}
