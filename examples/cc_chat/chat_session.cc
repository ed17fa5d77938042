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
  is_new_ = true;
}

// What people write is encoded as text: somebody who types "<|im_end|>" can't end the turn.
void ChatSession::AddText(std::string_view text, std::vector<Token>& prompt) const {
  for (Token token : tokenizer_.Encode(text, Tokenizer::Specials::kAsText)) prompt.push_back(token);
}

void ChatSession::AddTurn(std::string_view role, std::string_view text,
                          std::vector<Token>& prompt) const {
  prompt.push_back(turn_begin_);
  AddText(std::string(role) + "\n" + std::string(text), prompt);
  prompt.push_back(turn_end_);
  AddText("\n", prompt);
}

std::vector<Token> ChatSession::SystemPrompt() const {
  std::vector<Token> prompt;
  AddTurn("system", system_prompt_, prompt);
  return prompt;
}

// What the model has to read before it answers.
std::vector<Token> ChatSession::PromptFor(std::string_view message) const {
  std::vector<Token> prompt = unread_;
  if (!is_new_) {
    prompt.push_back(turn_end_);  // of the model's own last turn
    AddText("\n", prompt);
  }
  AddTurn("user", message, prompt);
  prompt.push_back(turn_begin_);
  AddText("assistant\n", prompt);
  return prompt;
}

Reply ChatSession::Ask(std::string_view message, int max_tokens,
                       const std::function<void(std::string_view)>& on_text) {
  const std::vector<Token> system = knows_system_prompt_ ? std::vector<Token>() : SystemPrompt();
  const std::vector<Token> prompt = PromptFor(message);
  const int needed = model_.length() + static_cast<int>(system.size() + prompt.size());
  if (needed > model_.capacity()) {
    throw std::length_error("with this message the conversation has " + std::to_string(needed) +
                            " tokens, but the model can read at most " +
                            std::to_string(model_.capacity()) +
                            ": shorten the message or begin a new conversation");
  }

  Reply reply;
  reply.prompt_tokens = static_cast<int>(system.size() + prompt.size());
  if (is_new_ && knows_system_prompt_) {
    reply.forked_tokens = system_tokens_;
    reply.forked_seconds = system_seconds_;
  }
  const Stopwatch prefill;
  if (!knows_system_prompt_) {
    model_.BeginWith(system);
    system_tokens_ = static_cast<int>(system.size());
    system_seconds_ = prefill.Seconds();
    knows_system_prompt_ = true;
  }
  std::span<const float> logits = model_.Append(prompt);
  reply.prefill_seconds = prefill.Seconds();
  is_new_ = false;

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
