#include "examples/cc_chat/gguf.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "examples/cc_chat/testing/check.h"

namespace chat {
namespace {

using testing::ErrorOf;

template <class T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string Text(const std::string& text) { return Raw<uint64_t>(text.size()) + text; }

std::string Header(uint64_t count) {
  return "GGUF" + Raw<uint32_t>(3) + Raw<uint64_t>(0) + Raw<uint64_t>(count);
}

// A file with one value of each kind that is read.
std::string GoodFile() {
  return Header(6) +                                              //
         Text("name") + Raw<uint32_t>(8) + Text("small") +        // string
         Text("layers") + Raw<uint32_t>(4) + Raw<uint32_t>(30) +  // uint32
         Text("below") + Raw<uint32_t>(5) + Raw<int32_t>(-7) +    // int32
         Text("flag") + Raw<uint32_t>(7) + Raw<uint8_t>(1) +      // bool
         Text("words") + Raw<uint32_t>(9) + Raw<uint32_t>(8) + Raw<uint64_t>(2) + Text("a") +
         Text("bc") +  // strings
         Text("types") + Raw<uint32_t>(9) + Raw<uint32_t>(5) + Raw<uint64_t>(2) + Raw<int32_t>(1) +
         Raw<int32_t>(3);  // int32s
}

Gguf Read(const std::string& content) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder ? folder : "/tmp") + "/gguf_test.gguf";
  std::ofstream(path, std::ios::binary) << content;
  return Gguf::Read(path);
}

std::string ErrorOfRead(const std::string& content) {
  return ErrorOf([&] { Read(content); });
}

void ReadsValues() {
  const Gguf gguf = Read(GoodFile() + "what follows is not looked at");
  CHECK(gguf.String("name") == "small");
  CHECK(gguf.Integer("layers") == 30);
  CHECK(gguf.Integer("below") == -7);
  CHECK(gguf.Integer("flag") == 1);
  CHECK(gguf.Strings("words") == std::vector<std::string>({"a", "bc"}));
  CHECK(gguf.Integers("types") == std::vector<int64_t>({1, 3}));
  CHECK_CONTAINS(ErrorOf([&] { gguf.String("nmae"); }), "has no \"nmae\"");
  CHECK_CONTAINS(ErrorOf([&] { gguf.String("layers"); }), "\"layers\" is not a string");
}

void RefusesEveryShorterFile() {
  const std::string good = GoodFile();
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK_CONTAINS(ErrorOfRead(good.substr(0, size)), "gguf_test.gguf: ");
  }
}

void RefusesWhatItCantBe() {
  CHECK_CONTAINS(ErrorOfRead("PK\3\4 a zip file"), "this is no GGUF file");
  CHECK_CONTAINS(ErrorOfRead("GGUF" + Raw<uint32_t>(9) + std::string(16, '\0')), "version is 9");
  const uint64_t huge = ~uint64_t{0} / 2;
  const std::string key = Header(1) + Text("key");
  CHECK_CONTAINS(ErrorOfRead(Header(1) + Raw(huge)), "is longer than the file");
  CHECK_CONTAINS(ErrorOfRead(key + Raw<uint32_t>(8) + Raw(huge)), "\"key\": a string of");
  CHECK_CONTAINS(ErrorOfRead(key + Raw<uint32_t>(9) + Raw<uint32_t>(0) + Raw(huge)),
                 "\"key\": an array of");
  CHECK_CONTAINS(ErrorOfRead(key + Raw<uint32_t>(99)), "type 99 are not supported");
  CHECK_CONTAINS(ErrorOf([] { Gguf::Read("/nowhere/model.gguf"); }),
                 "/nowhere/model.gguf: can't open");
}

}  // namespace
}  // namespace chat

int main() {
  chat::ReadsValues();
  chat::RefusesEveryShorterFile();
  chat::RefusesWhatItCantBe();
  return chat::testing::failures == 0 ? 0 : 1;
}
