// Runs the feed-forward block, whose operator in swiglu.cc is a part of this program.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "examples/custom_op/feed_forward.h"

using examples::custom_op::FeedForward;

int main() {
  const auto model = FeedForward::Load();
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  std::vector<float> x(3 * 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const auto out = model->Run({.x = {x, {3, 16}}});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", out.error().message().c_str());
    return 1;
  }
  for (int row = 0; row < 3; ++row) {
    std::printf("row %d begins with %7.4f\n", row, static_cast<double>(out->output(row, 0)));
  }
}
