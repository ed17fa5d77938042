// A conversation with a language model.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "examples/cc_chat/gguf.h"
#include "examples/cc_chat/language_model.h"
#include "examples/cc_chat/sampler.h"
#include "examples/cc_chat/tokenizer.h"

namespace chat {

// What the model's chat template says when nothing else is asked for.
inline constexpr std::string_view kDefaultSystemPrompt =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

// Throws std::runtime_error unless the file's chat template is the one that ChatSession follows.
void CheckChatTemplate(const Gguf& gguf);

struct Reply {
  enum Stop { kEndOfTurn, kMaxTokens, kContextFull };
  Stop stop = kMaxTokens;     // why the reply ended
  std::vector<Token> tokens;  // without the one that ends the turn
  int prompt_tokens = 0;      // what the model read before it wrote
  double prefill_seconds = 0;
  // Of a conversation that began as a fork of the one that read the system prompt: its tokens, and
  // what it took to read them. The copy of the cache that the fork takes is part of the prefill.
  int forked_tokens = 0;
  double forked_seconds = 0;
  int decode_steps = 0;  // the tokens that it wrote and read again
  double decode_seconds = 0;
};

class ChatSession {
 public:
  // The model and the tokenizer must outlive the session.
  ChatSession(LanguageModel& model, const Tokenizer& tokenizer, const SamplerOptions& sampling,
              std::string system_prompt = std::string(kDefaultSystemPrompt));

  // Says something to the model, and hands its answer to `on_text` piece by piece, each whole
  // UTF-8. Throws std::length_error when the message doesn't fit into what is left of the model's
  // context; the conversation then is what it was.
  Reply Ask(std::string_view message, int max_tokens,
            const std::function<void(std::string_view)>& on_text);

  // Begins a new conversation.
  void Reset();

 private:
  std::vector<Token> SystemPrompt() const;
  std::vector<Token> PromptFor(std::string_view message) const;
  void AddText(std::string_view text, std::vector<Token>& prompt) const;
  void AddTurn(std::string_view role, std::string_view text, std::vector<Token>& prompt) const;

  LanguageModel& model_;
  const Tokenizer& tokenizer_;
  Sampler sampler_;
  std::string system_prompt_;
  const Token turn_begin_, turn_end_;
  std::vector<Token> unread_;  // the end of the last reply, which the model has not read yet
  bool is_new_ = true;         // whether nothing was said in the conversation
  bool knows_system_prompt_ = false;
  int system_tokens_ = 0;
  double system_seconds_ = 0;  // to read them
};

}  // namespace chat
