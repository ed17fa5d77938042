#include "examples/cc_chat/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>

#include "examples/cc_chat/pre_tokenizer.h"
#include "examples/cc_chat/utf8.h"

namespace chat {
namespace {

// GGUF's numbers for the types of tokens that are found in a text as a whole.
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;

// Byte-level BPE writes its tables with a printable character for each byte: itself where that is
// printable in Latin-1, else the next character from U+0100 on, in order of the bytes.
std::array<char32_t, 256> ByteAlphabet() {
  std::array<char32_t, 256> alphabet;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    alphabet[byte] = printable ? static_cast<char32_t>(byte) : next++;
  }
  return alphabet;
}

// The bytes of a token as the tables write it; nothing when a character is not of the alphabet.
std::optional<std::string> FromAlphabet(std::string_view text) {
  static const auto byte_of = [] {
    std::unordered_map<char32_t, char> map;
    const auto alphabet = ByteAlphabet();
    for (int byte = 0; byte < 256; ++byte) map[alphabet[byte]] = static_cast<char>(byte);
    return map;
  }();
  std::string bytes;
  while (!text.empty()) {
    const Utf8Character first = FirstUtf8Character(text);
    const auto found = byte_of.find(first.code);
    if (found == byte_of.end()) return std::nullopt;
    bytes += found->second;
    text.remove_prefix(first.length);
  }
  return bytes;
}

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

void Require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("tokenizer: " + what);
}

}  // namespace

Tokenizer::Tokenizer(const Gguf& gguf) {
  const std::string& model = gguf.String("tokenizer.ggml.model");
  Require(model == "gpt2", "\"tokenizer.ggml.model\" is \"" + model + "\", must be \"gpt2\"");
  const std::string& pre = gguf.String("tokenizer.ggml.pre");
  Require(pre == "smollm", "\"tokenizer.ggml.pre\" is \"" + pre + "\", must be \"smollm\"");
  const auto& texts = gguf.Strings("tokenizer.ggml.tokens");
  const auto& types = gguf.Integers("tokenizer.ggml.token_type");
  Require(types.size() == texts.size(),
          std::to_string(texts.size()) + " tokens, but " + std::to_string(types.size()) + " types");

  token_of_byte_.fill(-1);
  std::unordered_map<std::string_view, int32_t> token_of_text;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto token = static_cast<int32_t>(i);
    if (types[i] == kControl || types[i] == kUserDefined) {
      bytes_.push_back(texts[i]);
      specials_.emplace_back(texts[i], token);
      continue;
    }
    const std::optional<std::string> bytes = FromAlphabet(texts[i]);
    Require(bytes.has_value(), "token " + std::to_string(i) + " is not byte-level text");
    if (bytes->size() == 1) token_of_byte_[static_cast<unsigned char>(bytes->front())] = token;
    bytes_.push_back(*bytes);
    token_of_text[texts[i]] = token;
  }
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });

  int32_t rank = 0;
  for (const std::string& merge : gguf.Strings("tokenizer.ggml.merges")) {
    const size_t space = merge.find(' ');
    Require(space != std::string::npos, "merge \"" + merge + "\" is not a pair");
    const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    const auto token = [&](const std::string& text) {
      const auto found = token_of_text.find(text);
      Require(found != token_of_text.end(),
              "merge \"" + merge + "\" needs token \"" + text + "\", which there isn't");
      return found->second;
    };
    merges_.try_emplace(PairKey(token(left), token(right)), Merge{rank++, token(left + right)});
  }
}

Token Tokenizer::Special(std::string_view text) const {
  for (const auto& [special, token] : specials_) {
    if (special == text) return token;
  }
  throw std::runtime_error("tokenizer: has no special token " + std::string(text));
}

std::vector<Token> Tokenizer::Encode(std::string_view text, Specials specials) const {
  std::vector<Token> tokens;
  size_t begin = 0;  // of the text since the last special token
  size_t i = 0;
  while (specials == Specials::kRecognise && i < text.size()) {
    const auto found = std::find_if(specials_.begin(), specials_.end(), [&](const auto& special) {
      return text.substr(i).starts_with(special.first);
    });
    if (found == specials_.end()) {
      ++i;
      continue;
    }
    EncodeText(text.substr(begin, i - begin), tokens);
    tokens.push_back(found->second);
    begin = i += found->first.size();
  }
  EncodeText(text.substr(begin), tokens);
  return tokens;
}

void Tokenizer::EncodeText(std::string_view text, std::vector<Token>& tokens) const {
  for (const std::string_view word : PreTokenize(text)) EncodeWord(word, tokens);
}

const Tokenizer::Merge* Tokenizer::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// Begins with one token per byte, then merges again and again the pair that comes first in the
// file's list of merges (the leftmost one of equals), until no pair is in the list.
void Tokenizer::EncodeWord(std::string_view word, std::vector<Token>& tokens) const {
  // A linked list, so that a merge takes no time that depends on the length of the word.
  struct Node {
    int32_t token;  // -1: merged into its left neighbour
    int previous, next;
  };
  std::vector<Node> nodes;
  for (const char byte : word) {
    const int32_t token = token_of_byte_[static_cast<unsigned char>(byte)];
    // Bytes that no token stands for are left out, as the reference implementation does.
    if (token < 0) continue;
    const int i = static_cast<int>(nodes.size());
    nodes.push_back({token, i - 1, i + 1});
  }
  if (nodes.empty()) return;
  nodes.back().next = -1;

  struct Candidate {
    int32_t rank;
    int left;
    int32_t left_token, right_token;  // as they were when the candidate was found
    bool operator>(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int left) {
    if (left < 0 || nodes[left].next < 0) return;
    const int32_t left_token = nodes[left].token, right_token = nodes[nodes[left].next].token;
    if (const Merge* merge = FindMerge(left_token, right_token)) {
      queue.push({merge->rank, left, left_token, right_token});
    }
  };
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) offer(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.left];
    if (left.token != best.left_token || left.next < 0) continue;  // out of date
    Node& right = nodes[left.next];
    if (right.token != best.right_token) continue;
    left.token = FindMerge(best.left_token, best.right_token)->merged;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0) nodes[left.next].previous = best.left;
    offer(left.previous);
    offer(best.left);
  }
  for (int i = 0; i >= 0; i = nodes[i].next) tokens.push_back(nodes[i].token);
}

}  // namespace chat
