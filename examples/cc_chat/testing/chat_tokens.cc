// Lets a test see the tokens of greedy replies: reads one message per line, each for a conversation
// of its own, and prints the tokens of the reply as one line.
//
//   chat_tokens FILE.gguf MAX_TOKENS

#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "examples/cc_chat/chat_session.h"
#include "examples/cc_chat/gguf.h"
#include "examples/cc_chat/llm.h"
#include "examples/cc_chat/tokenizer.h"

int main(int, char** argv) {
  try {
    const chat::Tokenizer tokenizer(chat::Gguf::Read(argv[1]));
    chat::Llm model;
    chat::ChatSession session(model, tokenizer, {});
    for (std::string message; std::getline(std::cin, message);) {
      session.Reset();
      const auto reply = session.Ask(message, std::stoi(argv[2]), [](std::string_view) {});
      for (const chat::Token token : reply.tokens) std::cout << token << ' ';
      std::cout << std::endl;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "chat_tokens: " << error.what() << "\n";
    return 1;
  }
}
