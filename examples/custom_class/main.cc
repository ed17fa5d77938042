// Embeds three ages; the class in buckets.cc is a part of this program.

#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/custom_class/age_embedding.h"

using examples::custom_class::AgeEmbedding;

int main() {
  const auto model = AgeEmbedding::Load();  // makes the object
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  const std::vector<float> ages = {7, 44.5, std::nanf("")};
  const auto out = model->Run({.ages = {ages, {3}}});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", out.error().message().c_str());
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    std::printf("%4.1f begins with %7.4f\n", static_cast<double>(ages[i]),
                static_cast<double>(out->output(i, 0)));
  }
}
