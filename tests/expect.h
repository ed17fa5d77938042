/// A test's own assertions, for tests that need no framework.

#ifndef TESTS_EXPECT_H_
#define TESTS_EXPECT_H_

#include <cstdio>
#include <string>

inline int failures = 0;

inline void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  ++failures;
}

#endif  // TESTS_EXPECT_H_
