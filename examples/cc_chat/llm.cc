#include "examples/cc_chat/llm.h"

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
      beginning_(ValueOrThrow(model_.NewSession())),
      sequence_(ValueOrThrow(beginning_.Fork())),
      ones_(kCapacity, 1) {}

void Llm::BeginWith(std::span<const Token> tokens) {
  // What a session holds beyond its length is never read, so that it need not be cleared.
  length_ = 0;
  Append(tokens);
  beginning_ = ValueOrThrow(sequence_.Fork());
  beginning_length_ = length_;
}

void Llm::Reset() {
  sequence_ = ValueOrThrow(beginning_.Fork());
  length_ = beginning_length_;
}

std::span<const float> Llm::Append(std::span<const Token> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t total = length_ + count;
  std::vector<int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), length_);

  outputs_ = ValueOrThrow(sequence_.Run({
      .input_ids = {tokens.data(), {1, count}},
      .attention_mask = {ones_.data(), {1, total}},
      .cache_position = {positions.data(), {count}},
  }));
  length_ = static_cast<int>(total);
  return outputs_->output.span();
}

}  // namespace chat
