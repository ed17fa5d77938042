// The metadata of a GGUF file: the named values in front of the tensors.
//
// A GGUF file of a language model carries its tokenizer and its chat template beside the weights.
// Only those are read here; the weights come with the compiled model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace chat {

class Gguf {
 public:
  // Reads the metadata of the file. Throws std::runtime_error, naming the file and the key, when
  // the file is no GGUF, is cut short, or holds a length that it can't have.
  static Gguf Read(const std::string& path);

  // The value of a key; throws std::runtime_error when there is none, or one of another type.
  const std::string& String(std::string_view key) const;
  int64_t Integer(std::string_view key) const;
  const std::vector<std::string>& Strings(std::string_view key) const;
  const std::vector<int64_t>& Integers(std::string_view key) const;

 private:
  // All integer types and bool are kept as int64_t, both float types as double.
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                             std::vector<double>, std::vector<std::string>>;
  friend class GgufReader;

  template <class T>
  const T& Get(std::string_view key, const char* type) const;

  std::string path_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace chat
