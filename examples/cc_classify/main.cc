// Says what is in pictures. See --help.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "examples/cc_classify/image.h"
#include "examples/cc_classify/labels.h"
#include "examples/cc_classify/preprocess.h"
#include "models/efficientnet_lite0.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace {

constexpr char kHelp[] = R"(Says what is in pictures, with EfficientNet-Lite0.

  cc_classify PICTURE...    PNG (8 bits per sample), PPM or PGM

For each picture the five likeliest of ImageNet's 1,000 classes, with their probabilities.
)";

constexpr int kTop = 5;

// Under `bazel run`, a path is meant relative to where the user typed it.
std::string UserPath(const std::string& path) {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  return folder && !path.starts_with('/') ? std::string(folder) + "/" + path : path;
}

std::vector<std::string> BuiltInLabels(const char* argv0) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(
      Runfiles::Create(argv0, BAZEL_CURRENT_REPOSITORY, &error));
  if (!runfiles) throw std::runtime_error(error);
  return classify::ReadLabels(runfiles->Rlocation(SYNSETS_RLOCATION),
                              runfiles->Rlocation(LEMMAS_RLOCATION));
}

void PrintTop(std::span<const float> logits, const std::vector<std::string>& labels) {
  if (logits.size() != labels.size()) throw std::runtime_error("not one label per class");
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + kTop, order.end(),
                    [&](int a, int b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - logits[order[0]]);
  for (int i = 0; i < kTop; ++i) {
    const double probability = std::exp(logits[order[i]] - logits[order[0]]) / sum;
    std::printf("  %5.1f %%  %s\n", 100 * probability, labels[order[i]].c_str());
  }
}

void Run(std::span<char*> pictures, const char* argv0) {
  // All pictures are one batch.
  std::vector<float> batch;
  for (const char* picture : pictures) {
    const std::vector<float> values = classify::Preprocess(classify::ReadImage(UserPath(picture)));
    batch.insert(batch.end(), values.begin(), values.end());
  }
  const std::vector<std::string> labels = BuiltInLabels(argv0);

  const auto model = models::EfficientnetLite0::Load();
  if (!model.ok()) throw std::runtime_error(model.error().message());
  const auto count = static_cast<int64_t>(pictures.size());
  const auto outputs = model->Run(
      {.images = {batch.data(), {count, 3, classify::kInputSize, classify::kInputSize}}});
  if (!outputs.ok()) throw std::runtime_error(outputs.error().message());

  const std::span<const float> logits = outputs->output.span();
  const size_t classes = logits.size() / pictures.size();
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::printf("%s\n", pictures[i]);
    PrintTop(logits.subspan(i * classes, classes), labels);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv + 1, argv + argc);
  for (const std::string_view argument : arguments) {
    if (argument == "--help") {
      std::cout << kHelp;
      return 0;
    }
    if (argument.starts_with("--")) {
      std::cerr << "cc_classify: unknown argument " << argument << " (see --help)\n";
      return 2;
    }
  }
  if (arguments.empty()) {
    std::cerr << "cc_classify: name a picture (see --help)\n";
    return 2;
  }
  try {
    Run(arguments, argv[0]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cc_classify: " << error.what() << "\n";
    return 1;
  }
}
