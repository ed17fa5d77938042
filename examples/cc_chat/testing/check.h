// Checks for tests: each failure is printed; the test fails at its end.
#pragma once

#include <exception>
#include <iostream>
#include <string>

namespace chat::testing {

inline int failures = 0;

inline void Check(bool condition, const char* what, const char* file, int line) {
  if (condition) return;
  std::cerr << file << ":" << line << ": " << what << "\n";
  ++failures;
}

// The text of the exception that the call throws; "" when it throws none.
template <class Call>
std::string ErrorOf(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline void CheckContains(const std::string& text, const std::string& part, const char* file,
                          int line) {
  Check(text.find(part) != text.npos, ("\"" + text + "\" has no \"" + part + "\"").c_str(), file,
        line);
}

}  // namespace chat::testing

#define CHECK(condition) ::chat::testing::Check((condition), #condition, __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) \
  ::chat::testing::CheckContains((text), (part), __FILE__, __LINE__)
