#include "examples/cc_chat/chat_session.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "examples/cc_chat/utf8.h"

namespace chat {
namespace {

// ChatML: "<|im_start|>ROLE\nTEXT<|im_end|>\n" for each message, and a system message first.
constexpr std::string_view kChatTemplate =
    "{% for message in messages %}"
    "{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
    "{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

void CheckChatTemplate(const Gguf& gguf) {
  const std::string& text = gguf.String("tokenizer.chat_template");
  if (text != kChatTemplate) {
    throw std::runtime_error(
        "the file's chat template is not SmolLM2's, which is all that this "
        "program knows: " +
        text);
  }
}

ChatSession::ChatSession(LanguageModel& model, const Tokenizer& tokenizer,
                         const SamplerOptions& sampling, std::string system_prompt)
    : model_(model),
      tokenizer_(tokenizer),
      sampler_(sampling),
      system_prompt_(std::move(system_prompt)),
      turn_begin_(tokenizer.Special("<|im_start|>")),
      turn_end_(tokenizer.Special("<|im_end|>")) {}

void ChatSession::Reset() {
  model_.Reset();
  unread_.clear();
}

// What the model has to read before it answers. What people write is encoded as text: somebody who
// types "<|im_end|>" can't end the turn.
std::vector<Token> ChatSession::PromptFor(std::string_view message) const {
  std::vector<Token> prompt = unread_;
  const auto add_text = [&](std::string_view text) {
    for (Token token : tokenizer_.Encode(text, Tokenizer::Specials::kAsText)) {
      prompt.push_back(token);
    }
  };
  const auto add_turn = [&](std::string_view role, std::string_view text) {
    prompt.push_back(turn_begin_);
    add_text(std::string(role) + "\n" + std::string(text));
    prompt.push_back(turn_end_);
    add_text("\n");
  };
  if (model_.length() == 0) {
    add_turn("system", system_prompt_);
  } else {
    prompt.push_back(turn_end_);  // of the model's own last turn
    add_text("\n");
  }
  add_turn("user", message);
  prompt.push_back(turn_begin_);
  add_text("assistant\n");
  return prompt;
}

Reply ChatSession::Ask(std::string_view message, int max_tokens,
                       const std::function<void(std::string_view)>& on_text) {
  const std::vector<Token> prompt = PromptFor(message);
  const int needed = model_.length() + static_cast<int>(prompt.size());
  if (needed > model_.capacity()) {
    throw std::length_error("with this message the conversation has " + std::to_string(needed) +
                            " tokens, but the model can read at most " +
                            std::to_string(model_.capacity()) +
                            ": shorten the message or begin a new conversation");
  }

  Reply reply;
  reply.prompt_tokens = static_cast<int>(prompt.size());
  const Stopwatch prefill;
  std::span<const float> logits = model_.Append(prompt);
  reply.prefill_seconds = prefill.Seconds();

  const Stopwatch decode;
  Utf8Stream text;
  unread_.clear();
  while (static_cast<int>(reply.tokens.size()) < max_tokens) {
    if (!unread_.empty()) {
      if (model_.length() == model_.capacity()) {
        reply.stop = Reply::kContextFull;
        break;
      }
      logits = model_.Append(unread_);
      unread_.clear();
      ++reply.decode_steps;
    }
    const Token token = sampler_.Sample(logits);
    if (token == turn_end_) {
      reply.stop = Reply::kEndOfTurn;
      break;
    }
    reply.tokens.push_back(token);
    unread_ = {token};
    on_text(text.Push(tokenizer_.Bytes(token)));
  }
  on_text(text.Finish());
  reply.decode_seconds = decode.Seconds();
  return reply;
}

}  // namespace chat
