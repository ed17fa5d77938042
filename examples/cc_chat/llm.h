// SmolLM2, compiled by AOTInductor (//models:llm_aoti).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/cc_chat/language_model.h"
#include "models/llm_aoti.h"

namespace chat {

class Llm : public LanguageModel {
 public:
  // Loads the model; with an empty path the weights that were built with it. Throws
  // std::runtime_error.
  explicit Llm(const std::string& weights_path = "");

  std::span<const float> Append(std::span<const Token> tokens) override;
  void Reset() override { length_ = 0; }
  int length() const override { return length_; }
  int capacity() const override { return kCapacity; }

 private:
  static constexpr int kCapacity = 2048;
  // Layers, keys and values, places in the sequence, heads, numbers per head.
  static constexpr std::array<int64_t, 5> kCacheShape = {30, 2, kCapacity, 3, 64};

  models::LlmAoti model_;
  std::optional<models::LlmAoti::Outputs> outputs_;
  // The keys and values of the tokens so far. The model writes those of new tokens after them, in
  // place, and never reads beyond: memory that is not used yet need not be cleared.
  std::vector<float> cache_;
  std::vector<int64_t> ones_;  // the attention mask: each token may see all before it
  int length_ = 0;
};

}  // namespace chat
