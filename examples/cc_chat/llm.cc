#include "examples/cc_chat/llm.h"

#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace chat {
namespace {

// The value, or an exception with the error's text.
template <class T>
T ValueOrThrow(aoti::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

}  // namespace

Llm::Llm(const std::string& weights_path)
    : model_(ValueOrThrow(models::LlmAoti::Load({.weights_path = weights_path}))),
      cache_(std::accumulate(kCacheShape.begin(), kCacheShape.end(), size_t{1}, std::multiplies())),
      ones_(kCapacity, 1) {}

std::span<const float> Llm::Append(std::span<const Token> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t total = length_ + count;
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), length_);

  outputs_ = ValueOrThrow(model_.Run({
      .input_ids = {tokens.data(), {1, count}},
      .attention_mask = {ones_.data(), {1, total}},
      .cache_position = {positions.data(), {count}},
      .past_key_values = {cache_.data(), kCacheShape},
  }));
  length_ = static_cast<int>(total);
  return outputs_->output.span();
}

}  // namespace chat
