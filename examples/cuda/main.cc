// Scores a batch of rows on the first GPU.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "examples/cuda/scorer.h"

using examples::cuda::Scorer;

namespace {

int Report(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main() {
  const auto scorer = Scorer::Load({.cuda_device = 0});
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
