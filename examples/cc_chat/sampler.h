// Chooses the next token from the model's logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace chat {

struct SamplerOptions {
  float temperature = 0;  // 0: always the likeliest token (greedy)
  int top_k = 0;          // choose among the k likeliest; 0: among all
  float top_p = 1;        // ... and among the fewest likeliest that have probability p together
  uint64_t seed = 0;      // the same seed gives the same choices
};

class Sampler {
 public:
  // Throws std::invalid_argument when an option is out of its range.
  explicit Sampler(const SamplerOptions& options);

  int64_t Sample(std::span<const float> logits);

  struct Candidate {
    int64_t token;
    double probability;
  };

  // The tokens that Sample() chooses from. Their probabilities sum to 1.
  std::vector<Candidate> Candidates(std::span<const float> logits) const;

 private:
  SamplerOptions options_;
  std::mt19937_64 random_;
};

}  // namespace chat
