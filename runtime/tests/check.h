// Macros for tests: a failed check prints its place and its values, the test continues, and main()
// returns 1.
//
//   TEST(Adds) { CHECK_EQ(1 + 1, 2); }
//   int main() { return aoti::testing::RunAllTests(); }

#ifndef AOTI_RUNTIME_TESTS_CHECK_H_
#define AOTI_RUNTIME_TESTS_CHECK_H_

#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace aoti::testing {

struct TestCase {
  const char* name;
  void (*body)();
};

inline std::vector<TestCase>& Tests() {
  static std::vector<TestCase> tests;
  return tests;
}

inline int& Failures() {
  static int failures = 0;
  return failures;
}

struct Registration {
  Registration(const char* name, void (*body)()) { Tests().push_back({name, body}); }
};

template <typename T>
std::string ToText(const T& value) {
  if constexpr (requires(std::ostream& stream) { stream << value; }) {
    std::ostringstream stream;
    stream << value;
    return stream.str();
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    return "<value>";
  }
}

inline void Report(const char* file, int line, const std::string& what) {
  ++Failures();
  std::cerr << file << ":" << line << ": " << what << "\n";
}

inline int RunAllTests() {
  for (const TestCase& test : Tests()) {
    const int before = Failures();
    test.body();
    std::cerr << (Failures() == before ? "ok      " : "FAILED  ") << test.name << "\n";
  }
  if (Tests().empty()) Report(__FILE__, __LINE__, "there are no tests");
  return Failures() == 0 ? 0 : 1;
}

}  // namespace aoti::testing

#define TEST(name)                                                                \
  static void Test##name();                                                       \
  static const ::aoti::testing::Registration kRegister##name(#name, &Test##name); \
  static void Test##name()

#define CHECK_TRUE(condition)                                                               \
  do {                                                                                      \
    if (!(condition)) ::aoti::testing::Report(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)

#define CHECK_EQ(actual, expected)                                                                \
  do {                                                                                            \
    const auto actual_value = (actual);                                                           \
    const auto expected_value = (expected);                                                       \
    if (!(actual_value == expected_value)) {                                                      \
      ::aoti::testing::Report(__FILE__, __LINE__,                                                 \
                              #actual "\n    is:      " + ::aoti::testing::ToText(actual_value) + \
                                  "\n    must be: " + ::aoti::testing::ToText(expected_value));   \
    }                                                                                             \
  } while (false)

// Returns from the test if a Result has an error.
#define REQUIRE_OK(result)                                                                    \
  do {                                                                                        \
    if (!(result).ok()) {                                                                     \
      ::aoti::testing::Report(__FILE__, __LINE__, #result ": " + (result).error().message()); \
      return;                                                                                 \
    }                                                                                         \
  } while (false)

// Checks that a Result is an error with this code and this message.
#define CHECK_ERROR(result, error_code, text)                                    \
  do {                                                                           \
    const auto& checked_result = (result);                                       \
    if (checked_result.ok()) {                                                   \
      ::aoti::testing::Report(__FILE__, __LINE__, #result " is not an error");   \
    } else {                                                                     \
      CHECK_EQ(to_string(checked_result.error().code()), to_string(error_code)); \
      CHECK_EQ(checked_result.error().message(), std::string(text));             \
    }                                                                            \
  } while (false)

#endif  // AOTI_RUNTIME_TESTS_CHECK_H_
