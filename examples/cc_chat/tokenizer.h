// Byte-level BPE, built from the tables of a GGUF file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "examples/cc_chat/gguf.h"

namespace chat {

using Token = int64_t;  // what the model's input_ids are made of

class Tokenizer {
 public:
  // Throws std::runtime_error when the file's tokenizer is of a kind not known here.
  explicit Tokenizer(const Gguf& gguf);

  // What to do with a text that looks like a special token ("<|im_end|>").
  enum class Specials {
    kAsText,     // it is a text like any other: right for what a user typed
    kRecognise,  // it is that token: right for a prompt that has the chat template in it
  };

  std::vector<Token> Encode(std::string_view text, Specials specials) const;

  // The bytes that a token stands for. They need not be whole UTF-8 characters: see Utf8Stream.
  const std::string& Bytes(Token token) const { return bytes_.at(static_cast<size_t>(token)); }

  // The number of a special token; throws std::runtime_error when the file has no such token.
  Token Special(std::string_view text) const;

  size_t size() const { return bytes_.size(); }

 private:
  struct Merge {
    int32_t rank;    // merges of lower rank come first
    int32_t merged;  // the token that the pair becomes
  };

  void EncodeText(std::string_view text, std::vector<Token>& tokens) const;
  void EncodeWord(std::string_view word, std::vector<Token>& tokens) const;
  const Merge* FindMerge(int32_t left, int32_t right) const;

  std::vector<std::string> bytes_;                       // by token
  std::vector<std::pair<std::string, Token>> specials_;  // the longest text first
  std::array<int32_t, 256> token_of_byte_;               // -1: the vocabulary has no such byte
  std::unordered_map<uint64_t, Merge> merges_;           // by the pair of tokens
};

}  // namespace chat
