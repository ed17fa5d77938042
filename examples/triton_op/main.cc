// Runs the feed-forward block: on the first GPU with the argument "cuda", otherwise on the CPU.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

#include "examples/triton_op/feed_forward.h"

using examples::triton_op::FeedForward;

int main(int argc, char** argv) {
  const bool on_gpu = argc > 1 && std::string_view(argv[1]) == "cuda";
  const auto model =
      FeedForward::Load({.device = on_gpu ? aoti::DeviceType::kCuda : aoti::DeviceType::kCpu});
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
