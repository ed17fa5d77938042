// Whether the language model decodes faster with a program for one token beside the one for any
// number: milliseconds per token, of both in one process.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "aoti/result.h"
#include "benchmarks/llm_any.h"
#include "benchmarks/llm_variants_model.h"
#include "benchmarks/nanoseconds.h"

namespace {

using benchmarks::Fail;

constexpr std::int64_t kPrompt = 128;
constexpr int kTokens = 16;
constexpr int kRounds = 12;

template <typename T>
T Unwrap(aoti::Result<T> result) {
  if (!result.ok()) Fail(result.error());
  return *std::move(result);
}

// Appends tokens to the sequence that a session has.
template <typename Session>
void Append(const Session& session, std::int64_t past, std::int64_t count) {
  const std::vector<std::int64_t> tokens(static_cast<std::size_t>(count), 504);
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(past + count), 1);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), past);
  Unwrap(session.Run({.input_ids = {tokens, {1, count}},
                      .attention_mask = {ones, {1, past + count}},
                      .cache_position = {positions, {count}}}));
}

template <typename Session>
double MillisecondsPerToken(const Session& session) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < kTokens; ++i) Append(session, kPrompt + i, 1);
  const std::chrono::duration<double, std::milli> spent = Clock::now() - start;
  return spent.count() / kTokens;
}

}  // namespace

int main() {
  const auto any = Unwrap(benchmarks::LlmAny::Load());
  const auto variants = Unwrap(benchmarks::LlmVariantsModel::Load());
  const auto without = Unwrap(any.NewSession());
  const auto with = Unwrap(variants.NewSession());
  Append(without, 0, kPrompt);
  Append(with, 0, kPrompt);
  double best_without = 1e9;
  double best_with = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    best_without = std::min(best_without, MillisecondsPerToken(without));
    best_with = std::min(best_with, MillisecondsPerToken(with));
  }
  std::printf("one program %.2f ms per token, with one for a token %.2f ms, ratio %.3f\n",
              best_without, best_with, best_with / best_without);
}
