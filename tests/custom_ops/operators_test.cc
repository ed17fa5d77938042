// Calls operators in C++ on both runtimes, and sees what they throw.

#include <string>
#include <vector>

#include "tests/custom_ops/scaled.h"
#include "tests/custom_ops/scaled_on_libtorch.h"
#include "tests/expect.h"

template <typename Model>
void Run(const char* name) {
  const auto model = Model::Load();
  if (!model.ok()) return Expect(false, model.error().message());
  const std::vector<float> x = {0, 1, 2, 3, 10, 11, 12, 13, 0, 0, 0, 0};
  const auto out = model->Run({.x = {x.data(), {2, 4}}});
  if (!out.ok()) return Expect(false, out.error().message());
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 4; ++i) {
      const float expected = 2 * (x[static_cast<std::size_t>(4 * row + i)] + 3) + i;
      Expect(out->output_0(row, i) == expected, std::string(name) + ": the scaled value");
    }
    Expect(out->output_1(row) == out->output_0(row, 3), std::string(name) + ": the largest value");
  }
  const auto failed = model->Run({.x = {x, {3, 4}}});
  Expect(!failed.ok() && failed.error().code() == aoti::ErrorCode::kExecutionFailed,
         std::string(name) + ": the code");
  const std::string& message = failed.error().message();
  Expect(message.find(": tested::scale: ") != std::string::npos, message);
  Expect(message.find("scale does not take 3 rows") != std::string::npos, message);
  const auto again = model->Run({.x = {x.data(), {2, 4}}});
  Expect(again.ok() && again->output_0(1, 3) == out->output_0(1, 3),
         std::string(name) + ": a call after an error");
}

int main() {
  Run<tests::custom_ops::Scaled>("slim");
  Run<tests::custom_ops::ScaledOnLibtorch>("libtorch");
  return failures == 0 ? 0 : 1;
}
