#include "examples/cc_chat/gguf.h"

#include <bit>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace chat {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little endian");

// Reads values off the front of a file, and never more than the file has.
class GgufReader {
 public:
  explicit GgufReader(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_) throw std::runtime_error(path + ": can't open the file");
    in_.seekg(0, std::ios::end);
    left_ = static_cast<uint64_t>(in_.tellg());
    in_.seekg(0);
  }

  Gguf Read() {
    if (left_ < 4 || Number<uint32_t>() != kMagic) Fail("this is no GGUF file");
    const auto version = Number<uint32_t>();
    if (version != 2 && version != 3) {
      Fail("GGUF version is " + std::to_string(version) + ", must be 2 or 3");
    }
    Number<uint64_t>();  // how many tensors
    const auto count = Number<uint64_t>();
    Gguf gguf;
    gguf.path_ = path_;
    for (uint64_t i = 0; i < count; ++i) {
      key_.clear();
      key_ = String();
      gguf.values_[key_] = AnyValue();
    }
    return gguf;
  }

 private:
  static constexpr uint32_t kMagic = 0x46554747;  // "GGUF"

  // The types of values, numbered as in the file.
  enum Type : uint32_t {
    kUint8,
    kInt8,
    kUint16,
    kInt16,
    kUint32,
    kInt32,
    kFloat32,
    kBool,
    kString,
    kArray,
    kUint64,
    kInt64,
    kFloat64,
  };

  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": " + (key_.empty() ? "" : "\"" + key_ + "\": ") + what);
  }

  void Bytes(void* to, uint64_t size) {
    if (size > left_) {
      Fail("the file ends too early: " + std::to_string(size) + " bytes expected, " +
           std::to_string(left_) + " left");
    }
    if (!in_.read(static_cast<char*>(to), static_cast<std::streamsize>(size))) Fail("can't read");
    left_ -= size;
  }

  template <class T>
  T Number() {
    T value;
    Bytes(&value, sizeof value);
    return value;
  }

  std::string String() {
    const auto size = Number<uint64_t>();
    if (size > left_)
      Fail("a string of " + std::to_string(size) + " bytes is longer than the file");
    std::string text(size, '\0');
    Bytes(text.data(), size);
    return text;
  }

  int64_t Integer(uint32_t type) {
    switch (type) {
      case kBool:
      case kUint8:
        return Number<uint8_t>();
      case kInt8:
        return Number<int8_t>();
      case kUint16:
        return Number<uint16_t>();
      case kInt16:
        return Number<int16_t>();
      case kUint32:
        return Number<uint32_t>();
      case kInt32:
        return Number<int32_t>();
      case kUint64:
        return static_cast<int64_t>(Number<uint64_t>());
      case kInt64:
        return Number<int64_t>();
      default:
        Fail("values of type " + std::to_string(type) + " are not supported");
    }
  }

  double Float(uint32_t type) { return type == kFloat32 ? Number<float>() : Number<double>(); }

  template <class Read>
  auto Array(uint64_t count, Read read) {
    // Each element takes a byte or more: a count beyond the rest of the file is caught before
    // anything is allocated for it.
    if (count > left_) {
      Fail("an array of " + std::to_string(count) + " elements is longer than the file");
    }
    std::vector<decltype(read())> values;
    for (uint64_t i = 0; i < count; ++i) values.push_back(read());
    return values;
  }

  Gguf::Value AnyValue() {
    auto type = Number<uint32_t>();
    if (type == kString) return String();
    if (type == kFloat32 || type == kFloat64) return Float(type);
    if (type != kArray) return Integer(type);
    type = Number<uint32_t>();
    const auto count = Number<uint64_t>();
    if (type == kString) return Array(count, [&] { return String(); });
    if (type == kFloat32 || type == kFloat64) return Array(count, [&] { return Float(type); });
    return Array(count, [&] { return Integer(type); });
  }

  std::string path_;
  std::ifstream in_;
  uint64_t left_ = 0;  // bytes of the file that are not read yet
  std::string key_;    // the key whose value is being read
};

Gguf Gguf::Read(const std::string& path) { return GgufReader(path).Read(); }

template <class T>
const T& Gguf::Get(std::string_view key, const char* type) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    throw std::runtime_error(path_ + ": has no \"" + std::string(key) + "\"");
  }
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  throw std::runtime_error(path_ + ": \"" + std::string(key) + "\" is not " + type);
}

const std::string& Gguf::String(std::string_view key) const {
  return Get<std::string>(key, "a string");
}
int64_t Gguf::Integer(std::string_view key) const { return Get<int64_t>(key, "an integer"); }
const std::vector<std::string>& Gguf::Strings(std::string_view key) const {
  return Get<std::vector<std::string>>(key, "an array of strings");
}
const std::vector<int64_t>& Gguf::Integers(std::string_view key) const {
  return Get<std::vector<int64_t>>(key, "an array of integers");
}

}  // namespace chat
