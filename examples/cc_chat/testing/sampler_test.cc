#include "examples/cc_chat/sampler.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "examples/cc_chat/testing/check.h"

namespace chat {
namespace {

using testing::ErrorOf;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Probabilities 0.1, 0.4, 0.2, 0.3 at temperature 1.
const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

std::vector<int64_t> Draw(const SamplerOptions& options, int count) {
  Sampler sampler(options);
  std::vector<int64_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(sampler.Sample(kLogits));
  return tokens;
}

std::set<int64_t> CandidatesOf(const SamplerOptions& options) {
  std::set<int64_t> tokens;
  double sum = 0;
  for (const auto& [token, probability] : Sampler(options).Candidates(kLogits)) {
    tokens.insert(token);
    sum += probability;
  }
  CHECK(std::abs(sum - 1) < 1e-9);
  return tokens;
}

void GreedyTakesTheLikeliest() {
  CHECK(Draw({.temperature = 0}, 3) == std::vector<int64_t>({1, 1, 1}));
  CHECK(Sampler({}).Sample(std::vector<float>{1, 3, 3, 2}) == 1);  // the first one of equals
  CHECK(Sampler({}).Sample(std::vector<float>{-kInfinity, -5}) == 1);
}

// Frequencies of 40,000 draws: more than five standard deviations off would be a wrong sampler.
void FrequenciesAreTheProbabilities(float temperature, const std::vector<double>& expected) {
  constexpr int kDraws = 40000;
  std::vector<int> counts(expected.size());
  for (const int64_t token : Draw({.temperature = temperature, .seed = 7}, kDraws)) ++counts[token];
  for (size_t i = 0; i < expected.size(); ++i) {
    const double deviation = std::sqrt(expected[i] * (1 - expected[i]) / kDraws);
    CHECK(std::abs(counts[i] / double{kDraws} - expected[i]) < 5 * deviation);
  }
}

void TemperatureSharpensAndFlattens() {
  FrequenciesAreTheProbabilities(1, {0.1, 0.4, 0.2, 0.3});
  // p^2, normalised.
  FrequenciesAreTheProbabilities(0.5f, {0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3});
}

void SeedDecides() {
  CHECK(Draw({.temperature = 1, .seed = 1}, 50) == Draw({.temperature = 1, .seed = 1}, 50));
  CHECK(Draw({.temperature = 1, .seed = 1}, 50) != Draw({.temperature = 1, .seed = 2}, 50));
}

void TopK() {
  CHECK(CandidatesOf({.temperature = 1, .top_k = 0}) == std::set<int64_t>({0, 1, 2, 3}));
  CHECK(CandidatesOf({.temperature = 1, .top_k = 1}) == std::set<int64_t>({1}));
  CHECK(CandidatesOf({.temperature = 1, .top_k = 2}) == std::set<int64_t>({1, 3}));
  CHECK(CandidatesOf({.temperature = 1, .top_k = 99}) == std::set<int64_t>({0, 1, 2, 3}));
}

void TopP() {
  CHECK(CandidatesOf({.temperature = 1, .top_p = 1}) == std::set<int64_t>({0, 1, 2, 3}));
  CHECK(CandidatesOf({.temperature = 1, .top_p = 1e-6f}) == std::set<int64_t>({1}));
  CHECK(CandidatesOf({.temperature = 1, .top_p = 0.39f}) == std::set<int64_t>({1}));
  CHECK(CandidatesOf({.temperature = 1, .top_p = 0.41f}) == std::set<int64_t>({1, 3}));
  CHECK(CandidatesOf({.temperature = 1, .top_p = 0.71f}) == std::set<int64_t>({1, 2, 3}));
  // After top-k: of {0.4, 0.3} the first one alone has 0.57.
  CHECK(CandidatesOf({.temperature = 1, .top_k = 2, .top_p = 0.5f}) == std::set<int64_t>({1}));
}

void BadInput() {
  CHECK_CONTAINS(ErrorOf([] { Sampler({.temperature = -1}); }), "temperature must be 0");
  CHECK_CONTAINS(ErrorOf([] { Sampler({.temperature = NAN}); }), "temperature must be 0");
  CHECK_CONTAINS(ErrorOf([] { Sampler({.top_k = -1}); }), "top-k must be 0");
  CHECK_CONTAINS(ErrorOf([] { Sampler({.top_p = 0}); }), "top-p must be above 0");
  CHECK_CONTAINS(ErrorOf([] { Sampler({.top_p = 1.5f}); }), "top-p must be above 0");
  CHECK_CONTAINS(ErrorOf([] { Sampler({}).Sample(std::vector<float>{1, NAN}); }), "not a number");
  CHECK_CONTAINS(ErrorOf([] { Sampler({}).Sample(std::vector<float>{1, kInfinity}); }), "infinite");
  CHECK_CONTAINS(ErrorOf([] { Sampler({}).Sample({}); }), "no logits");
}

}  // namespace
}  // namespace chat

int main() {
  chat::GreedyTakesTheLikeliest();
  chat::TemperatureSharpensAndFlattens();
  chat::SeedDecides();
  chat::TopK();
  chat::TopP();
  chat::BadInput();
  return chat::testing::failures == 0 ? 0 : 1;
}
