// Scores a batch of rows: on the first GPU with the argument "cuda", otherwise on the CPU.

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "examples/cuda/scorer.h"

using examples::cuda::Scorer;

namespace {

int Report(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool on_gpu = argc > 1 && std::string_view(argv[1]) == "cuda";
  const auto scorer =
      Scorer::Load({.device = on_gpu ? aoti::DeviceType::kCuda : aoti::DeviceType::kCpu});
  if (!scorer.ok()) return Report(scorer.error());

  const std::int64_t batch = 3;
  std::vector<float> features(static_cast<std::size_t>(batch) * 8);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = 0.1F * static_cast<float>(i);
  const auto scores = scorer->Run({.features = {features, {batch, 8}}});
  if (!scores.ok()) return Report(scores.error());
  for (std::int64_t row = 0; row < batch; ++row) {
    std::printf("row %d: %.4f\n", static_cast<int>(row), static_cast<double>(scores->output(row)));
  }
}
