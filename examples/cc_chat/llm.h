// SmolLM2, compiled by AOTInductor (//models:llm_aoti).
#pragma once

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

  void BeginWith(std::span<const Token> tokens) override;
  std::span<const float> Append(std::span<const Token> tokens) override;
  void Reset() override;
  int length() const override { return length_; }
  int capacity() const override { return kCapacity; }

 private:
  static constexpr int kCapacity = 2048;

  models::LlmAoti model_;
  // A session has the keys and values of its tokens. That of the beginning is never run again:
  // sequences are forks of it.
  models::LlmAoti::Session beginning_;
  models::LlmAoti::Session sequence_;
  std::optional<models::LlmAoti::Outputs> outputs_;
  std::vector<int64_t> ones_;  // the attention mask: each token may see all before it
  int beginning_length_ = 0;
  int length_ = 0;
};

}  // namespace chat
