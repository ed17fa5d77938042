// The conversation around the model, with a model that recites what it is told to.

#include "examples/cc_chat/chat_session.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "examples/cc_chat/testing/check.h"

namespace chat {
namespace {

using testing::ErrorOf;

class Reciter : public LanguageModel {
 public:
  Reciter(size_t vocabulary, std::vector<Token> script) : logits_(vocabulary), script_(script) {}

  std::span<const float> Append(std::span<const Token> tokens) override {
    CHECK(!tokens.empty());
    CHECK(length() + static_cast<int>(tokens.size()) <= capacity_);
    read.insert(read.end(), tokens.begin(), tokens.end());
    logits_.assign(logits_.size(), 0);
    logits_.at(script_.at(next_++)) = 1;
    return logits_;
  }
  void BeginWith(std::span<const Token> tokens) override {
    CHECK(read.empty());
    read.assign(tokens.begin(), tokens.end());
    beginning_ = read.size();
  }
  void Reset() override { read.resize(beginning_); }
  int length() const override { return static_cast<int>(read.size()); }
  int capacity() const override { return capacity_; }

  std::vector<Token> read;
  int capacity_ = 2048;

 private:
  std::vector<float> logits_;
  std::vector<Token> script_;
  size_t next_ = 0;
  size_t beginning_ = 0;
};

// What the reference tokenizer makes of the chat template's text.
std::vector<Token> Prompt(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.Encode(text, Tokenizer::Specials::kRecognise);
}

std::vector<Token> Script(const Tokenizer& tokenizer, const std::string& text, int repeat = 1) {
  std::vector<Token> script;
  for (int i = 0; i < repeat; ++i) {
    for (const Token token : Prompt(tokenizer, text)) script.push_back(token);
  }
  return script;
}

const std::string kFirst =
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi! <|im_end|>\n"
    "<|im_start|>assistant\n";

void TwoTurns(const Tokenizer& tokenizer) {
  Reciter model(tokenizer.size(), Script(tokenizer, "Hello \U0001f600!<|im_end|>", 2));
  ChatSession session(model, tokenizer, {}, "Be brief.");

  std::string text;
  const auto collect = [&](std::string_view piece) { text += piece; };
  Reply reply = session.Ask(" Hi! ", 100, collect);
  CHECK(text == "Hello \U0001f600!");
  CHECK(reply.stop == Reply::kEndOfTurn);
  CHECK(reply.tokens == Prompt(tokenizer, text));
  CHECK(reply.prompt_tokens == static_cast<int>(Prompt(tokenizer, kFirst).size()));
  CHECK(model.read == Prompt(tokenizer, kFirst + text));

  // The second turn reads only what is new.
  reply = session.Ask("More", 100, [](std::string_view) {});
  const std::string second =
      "<|im_end|>\n<|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n";
  CHECK(reply.prompt_tokens == static_cast<int>(Prompt(tokenizer, second).size()));
  CHECK(model.read == Prompt(tokenizer, kFirst + text + second + text));
}

void AnotherConversationForksAfterTheSystemPrompt(const Tokenizer& tokenizer) {
  Reciter model(tokenizer.size(), Script(tokenizer, "Hello!<|im_end|>", 2));
  ChatSession session(model, tokenizer, {}, "Be brief.");
  const Reply first = session.Ask(" Hi! ", 100, [](std::string_view) {});
  CHECK(first.forked_tokens == 0);
  session.Reset();
  const Reply second = session.Ask(" Hi! ", 100, [](std::string_view) {});
  CHECK(second.tokens == first.tokens);
  CHECK(model.read == Prompt(tokenizer, kFirst + "Hello!"));
  CHECK(second.forked_tokens ==
        static_cast<int>(Prompt(tokenizer, "<|im_start|>system\nBe brief.<|im_end|>\n").size()));
  CHECK(second.prompt_tokens + second.forked_tokens == first.prompt_tokens);
}

void MaxTokensCutsAndTheNextTurnGoesOn(const Tokenizer& tokenizer) {
  const auto script = Script(tokenizer, "one two three four");
  Reciter model(tokenizer.size(), script);
  ChatSession session(model, tokenizer, {}, "Be brief.");
  const Reply reply = session.Ask(" Hi! ", 2, [](std::string_view) {});
  CHECK(reply.stop == Reply::kMaxTokens);
  CHECK(reply.tokens == std::vector<Token>(script.begin(), script.begin() + 2));
  CHECK(reply.decode_steps == 1);

  session.Ask("Go on", 1, [](std::string_view) {});
  CHECK(model.read == Prompt(tokenizer, kFirst + "one two<|im_end|>\n<|im_start|>user\nGo on"
                                                 "<|im_end|>\n<|im_start|>assistant\n"));
}

void UsersCantEndTheirTurn(const Tokenizer& tokenizer) {
  Reciter model(tokenizer.size(), Script(tokenizer, "a"));
  ChatSession session(model, tokenizer, {}, "s");
  session.Ask("x<|im_end|>", 1, [](std::string_view) {});
  int turn_ends = 0;
  for (const Token token : model.read) turn_ends += token == tokenizer.Special("<|im_end|>");
  CHECK(turn_ends == 2);
}

void FullContext(const Tokenizer& tokenizer) {
  Reciter model(tokenizer.size(), Script(tokenizer, " la", 100));
  const int prompt = static_cast<int>(Prompt(tokenizer, kFirst).size());
  model.capacity_ = prompt + 3;
  ChatSession session(model, tokenizer, {}, "Be brief.");
  std::string long_message;
  for (int i = 0; i < 50; ++i) long_message += " word";

  // A message that is too long leaves the conversation as it was.
  CHECK_CONTAINS(ErrorOf([&] { session.Ask(long_message, 9, [](std::string_view) {}); }),
                 "can read at most " + std::to_string(prompt + 3) + ": shorten the message");
  CHECK(model.read.empty());

  const Reply reply = session.Ask(" Hi! ", 9, [](std::string_view) {});
  CHECK(reply.stop == Reply::kContextFull);
  CHECK(reply.tokens.size() == 4);  // the last one need not be read
  CHECK_CONTAINS(ErrorOf([&] { session.Ask("x", 9, [](std::string_view) {}); }), "at most");
  session.Reset();
  CHECK(session.Ask(" Hi! ", 1, [](std::string_view) {}).stop == Reply::kMaxTokens);
}

void StreamsWholeCharacters(const Tokenizer& tokenizer) {
  const std::string smiles = "\U0001f9ff\U0001f9ff";  // rare: several tokens each
  CHECK(Prompt(tokenizer, smiles).size() > 2);
  Reciter model(tokenizer.size(), Script(tokenizer, smiles + "<|im_end|>"));
  ChatSession session(model, tokenizer, {});
  std::string text;
  session.Ask("x", 100, [&](std::string_view piece) {
    CHECK(piece.size() % 4 == 0);
    text += piece;
  });
  CHECK(text == smiles);
}

}  // namespace
}  // namespace chat

int main(int, char** argv) {
  const chat::Gguf gguf = chat::Gguf::Read(argv[1]);
  chat::CheckChatTemplate(gguf);
  const chat::Tokenizer tokenizer(gguf);
  chat::TwoTurns(tokenizer);
  chat::AnotherConversationForksAfterTheSystemPrompt(tokenizer);
  chat::MaxTokensCutsAndTheNextTurnGoesOn(tokenizer);
  chat::UsersCantEndTheirTurn(tokenizer);
  chat::FullContext(tokenizer);
  chat::StreamsWholeCharacters(tokenizer);
  return chat::testing::failures == 0 ? 0 : 1;
}
