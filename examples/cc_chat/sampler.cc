#include "examples/cc_chat/sampler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace chat {
namespace {

// The likeliest token; the first one of equals.
int64_t ArgMax(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

bool Likelier(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

void Normalise(std::vector<Sampler::Candidate>& candidates) {
  double sum = 0;
  for (const auto& candidate : candidates) sum += candidate.probability;
  for (auto& candidate : candidates) candidate.probability /= sum;
}

void CheckLogits(std::span<const float> logits) {
  if (logits.empty()) throw std::invalid_argument("sampler: no logits");
  for (const float logit : logits) {
    if (std::isnan(logit)) throw std::invalid_argument("sampler: a logit is not a number");
  }
  if (!std::isfinite(*std::max_element(logits.begin(), logits.end()))) {
    throw std::invalid_argument("sampler: the greatest logit is infinite");
  }
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
  const auto require = [](bool condition, const char* rule, auto value) {
    if (!condition) throw std::invalid_argument(rule + (", not " + std::to_string(value)));
  };
  require(options.temperature >= 0 && std::isfinite(options.temperature),
          "temperature must be 0 (greedy) or more", options.temperature);
  require(options.top_k >= 0, "top-k must be 0 (off) or more", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "top-p must be above 0 and at most 1",
          options.top_p);
}

int64_t Sampler::Sample(std::span<const float> logits) {
  const std::vector<Candidate> candidates = Candidates(logits);
  // 53 random bits make a number in [0, 1). (The standard's own distributions differ between
  // standard libraries: the same seed would not give the same text everywhere.)
  double left = static_cast<double>(random_() >> 11) * 0x1p-53;
  for (const auto& [token, probability] : candidates) {
    if (left < probability) return token;
    left -= probability;
  }
  return candidates.back().token;  // rounding left a little
}

std::vector<Sampler::Candidate> Sampler::Candidates(std::span<const float> logits) const {
  CheckLogits(logits);
  const int64_t likeliest = ArgMax(logits);
  if (options_.temperature == 0) return {{likeliest, 1.0}};

  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double distance = static_cast<double>(logits[i]) - logits[likeliest];
    candidates[i] = {static_cast<int64_t>(i), std::exp(distance / options_.temperature)};
  }

  const auto top_k = static_cast<size_t>(options_.top_k);
  if (top_k > 0 && top_k < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + top_k, candidates.end(), Likelier);
    candidates.resize(top_k);
  }
  Normalise(candidates);

  if (options_.top_p < 1) {
    // A heap gives the likeliest first without sorting the thousands that are not needed.
    const auto less_likely = [](const Candidate& a, const Candidate& b) { return Likelier(b, a); };
    std::vector<Candidate> nucleus;
    double sum = 0;
    std::make_heap(candidates.begin(), candidates.end(), less_likely);
    while (!candidates.empty() && sum < options_.top_p) {
      std::pop_heap(candidates.begin(), candidates.end(), less_likely);
      nucleus.push_back(candidates.back());
      candidates.pop_back();
      sum += nucleus.back().probability;
    }
    candidates = std::move(nucleus);
    Normalise(candidates);
  }
  return candidates;
}

}  // namespace chat
