// What a chat needs of a language model.
#pragma once

#include <span>

#include "examples/cc_chat/tokenizer.h"

namespace chat {

// A model that reads a sequence of tokens, some at a time, and predicts the one that comes next.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Reads the tokens that every sequence begins with (one or more), once: the sequence now is
  // these, and Reset() goes back to them.
  virtual void BeginWith(std::span<const Token> tokens) = 0;

  // Appends tokens (one or more, and not beyond capacity()) to the sequence. Returns one number per
  // token of the vocabulary: how likely it comes next. They are valid until the next call.
  virtual std::span<const float> Append(std::span<const Token> tokens) = 0;

  // Forgets what was appended.
  virtual void Reset() = 0;

  virtual int length() const = 0;    // how many tokens the sequence has
  virtual int capacity() const = 0;  // ... and can have
};

}  // namespace chat
