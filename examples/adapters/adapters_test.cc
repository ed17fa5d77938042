// adapters_test CATS DOGS: two adapters over one model's weights.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "examples/adapters/scorer.h"
#include "tests/expect.h"

namespace {

using examples::adapters::Scorer;

std::vector<float> ScoresOf(const Scorer& scorer) {
  static const std::vector<float> features = {1, -1, 2, -2, 3, -3, 4, -4};
  const auto out = scorer.Run({.features = {features, {1, 8}}});
  if (!out.ok()) return {};
  return {out->output(0, 0), out->output(0, 1), out->output(0, 2)};
}

// How many mappings of the model's weights this process has.
int Mappings() {
  const std::string name = std::filesystem::path(Scorer::Spec().weights_runfile).filename();
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(name) ? 1 : 0;
  return count;
}

void Test(const std::string& cats_file, const std::string& dogs_file) {
  const auto plain = Scorer::Load();
  const auto cats = Scorer::Load({.adapter_path = cats_file});
  const auto dogs = Scorer::Load({.adapter_path = dogs_file});
  if (!plain.ok() || !cats.ok() || !dogs.ok()) {
    for (const auto* model : {&plain, &cats, &dogs}) {
      if (!model->ok()) Expect(false, model->error().message());
    }
    return;
  }
  Expect(Mappings() == 1, "all have the weights in the same memory");
  const std::vector<float> scores = ScoresOf(*plain);
  Expect(scores.size() == 3, "three classes");
  Expect(ScoresOf(*cats) != scores && ScoresOf(*dogs) != scores, "each adapter counts");
  Expect(ScoresOf(*cats) != ScoresOf(*dogs), "and they differ");

  Expect(!plain->SwapAdapter(cats_file), "an adapter is put in");
  Expect(ScoresOf(*plain) == ScoresOf(*cats), "a running model takes an adapter");
  Expect(!plain->SwapWeights(""), "and goes back to its weights");
  Expect(ScoresOf(*plain) == scores, "which it had at first");
}

}  // namespace

int main(int, char** argv) {
  Test(argv[1], argv[2]);
  return failures == 0 ? 0 : 1;
}
