#include "examples/custom_op/feed_forward.h"

#include <cmath>
#include <vector>

#include "tests/expect.h"

using examples::custom_op::FeedForward;

int main() {
  const auto model = FeedForward::Load();
  if (!model.ok()) {
    Expect(false, model.error().message());
    return 1;
  }
  std::vector<float> x(2 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i % 16));
  const auto out = model->Run({.x = {x, {2, 16}}});
  if (!out.ok()) {
    Expect(false, out.error().message());
    return 1;
  }
  for (int i = 0; i < 16; ++i) Expect(out->output(0, i) == out->output(1, i), "equal rows");
  return failures == 0 ? 0 : 1;
}
