// The JSON of a safetensors header, parsed into plain entries.

#ifndef AOTI_RUNTIME_CORE_SAFETENSORS_HEADER_H_
#define AOTI_RUNTIME_CORE_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aoti::internal {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // in bytes from the start of the data
  std::int64_t end = 0;
};

// Parses the subset of JSON that a header may use: one object, whose values are objects with the
// keys "dtype", "shape" and "data_offsets", or "__metadata__" with strings. The parser is not
// recursive, so that no input can exhaust the stack.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  // Returns false if the text is not a header; error() says why. Stops after `most` entries.
  bool Parse(std::vector<HeaderEntry>& entries, std::size_t most);
  const std::string& error() const { return error_; }
  // The last value of a key in the metadata; empty if it has none.
  std::string metadata(std::string_view key) const;

 private:
  bool ParseEntry(HeaderEntry& entry);
  bool ParseMetadata();
  bool ParseString(std::string& out);
  bool ParseEscape(std::string& out);
  bool ParseHex4(std::uint32_t& out);
  bool ParseInt(std::int64_t& out);
  bool ParseInts(std::vector<std::int64_t>& out);

  void SkipSpace();
  bool Peek(char c);
  bool Accept(char c);
  bool Expect(char c);
  bool Fail(std::string_view why);

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_SAFETENSORS_HEADER_H_
