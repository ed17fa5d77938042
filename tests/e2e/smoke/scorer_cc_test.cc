// Loads the model, runs it for two sizes of its dynamic dim, and meets one refusal.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "models/scorer.h"

namespace {

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::cerr << "FAILED: " << what << "\n";
  ++failures;
}

}  // namespace

int main() {
  auto scorer = models::Scorer::Load();
  if (!scorer.ok()) {
    std::cerr << scorer.error().message() << "\n";
    return 1;
  }

  const std::vector<float> query = {1, 0, 0, 0, 0, 0, 2, 0};
  for (const int64_t count : {1, 5}) {
    std::vector<float> items(count * 8, 0.0f);
    for (int64_t i = 0; i < count; ++i) items[i * 8 + 7] = static_cast<float>(i + 1);
    auto out = scorer->Run({.query = {query.data(), {8}}, .items = {items.data(), {count, 8}}});
    if (!out.ok()) {
      std::cerr << out.error().message() << "\n";
      return 1;
    }
    Expect(out->output.size(0) == count, "one score per item");
    for (int64_t i = 0; i < count; ++i) {
      Expect(out->output.data()[i] == 2.0f * static_cast<float>(i + 1), "score of an item");
    }
  }

  const std::vector<float> many(65 * 8, 0.0f);
  auto refused = scorer->Run({.query = {query.data(), {8}}, .items = {many.data(), {65, 8}}});
  Expect(!refused.ok(), "65 items are refused");
  if (!refused.ok()) {
    const std::string message(refused.error().message());
    Expect(message.find("\"items\": dim 0 (items) is 65, must be in 1..64") != std::string::npos,
           "the refusal says why: " + message);
  }
  return failures == 0 ? 0 : 1;
}
