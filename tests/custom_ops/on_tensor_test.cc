// An operator on at::Tensor, in a model that therefore runs on libtorch.

#include <vector>

#include "tests/custom_ops/squared.h"
#include "tests/expect.h"

int main() {
  const auto model = tests::custom_ops::Squared::Load();
  if (!model.ok()) {
    Expect(false, model.error().message());
    return 1;
  }
  const std::vector<float> x = {0, 1, 2, 3};
  const auto out = model->Run({.x = {x, {4}}});
  if (!out.ok()) {
    Expect(false, out.error().message());
    return 1;
  }
  for (int i = 0; i < 4; ++i) Expect(out->output(i) == static_cast<float>(i * i + 1), "x * x + 1");
  return failures == 0 ? 0 : 1;
}
