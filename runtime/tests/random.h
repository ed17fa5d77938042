// Numbers for tests that draw their cases, the same in every run.

#ifndef AOTI_RUNTIME_TESTS_RANDOM_H_
#define AOTI_RUNTIME_TESTS_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <random>

namespace aoti::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Both ends are included.
  std::int64_t In(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool OneIn(int n) { return In(1, n) == 1; }
  std::size_t Index(std::size_t size) {
    return static_cast<std::size_t>(In(0, static_cast<std::int64_t>(size) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_RANDOM_H_
