// The first step of tokenization: cuts a text into the words within which tokens are merged.
#pragma once

#include <string_view>
#include <vector>

namespace chat {

// SmolLM's rule: each number character stands alone; what lies between them is cut by GPT-2's
// regular expression,
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The words together are the text.
std::vector<std::string_view> PreTokenize(std::string_view text);

}  // namespace chat
