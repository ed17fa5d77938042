// The generator of random numbers: it gives the same numbers as PyTorch's on the CPU for the same
// seed.

#ifndef AOTI_RUNTIME_SLIM_MATH_GENERATOR_H_
#define AOTI_RUNTIME_SLIM_MATH_GENERATOR_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

namespace aoti::slim {

// Mersenne Twister. A caller holds the mutex while it draws numbers that belong together.
class Generator {
 public:
  // The only generator of the process. Before it is seeded, it starts as PyTorch's does.
  static Generator& Default();

  void Seed(std::uint64_t seed);  // as in PyTorch, only the lower 32 bits are used

  std::uint32_t Random() {
    if (next_ == kState) Refill();
    std::uint32_t word = state_[next_++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680;
    word ^= word << 15 & 0xefc60000;
    return word ^ word >> 18;
  }
  std::uint64_t Random64() {
    const std::uint64_t high = Random();
    return high << 32 | Random();
  }

  // In [0, 1), with all the bits of the type's mantissa.
  float UniformFloat() { return static_cast<float>(Random() & 0xffffff) * 0x1p-24f; }
  double UniformDouble() { return static_cast<double>(Random64() & 0x1fffffffffffff) * 0x1p-53; }
  // These numbers are drawn in pairs; the second one is kept for the next call.
  double Normal();

  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr std::size_t kState = 624;

  Generator();
  void Refill();

  std::mutex mutex_;
  std::array<std::uint32_t, kState> state_;
  std::size_t next_ = kState;
  std::optional<double> next_normal_;
};

}  // namespace aoti::slim

// Seeds the default generator, as torch.manual_seed() does.
extern "C" void aoti_slim_manual_seed(std::uint64_t seed);

#endif  // AOTI_RUNTIME_SLIM_MATH_GENERATOR_H_
