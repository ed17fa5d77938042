// Prints the scores of one row: needs no file but itself.

#include <cstdio>
#include <vector>

#include "tests/shims/on_slim.h"

int main() {
  auto model = tests::shims::OnSlim::Load();
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  auto out = model->Run({.x = {x.data(), {1, 8}}});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", out.error().message().c_str());
    return 1;
  }
  float sum = 0;
  for (const float score : out->output.span()) sum += score;
  std::printf("%.3f\n", static_cast<double>(sum));
  return 0;
}
