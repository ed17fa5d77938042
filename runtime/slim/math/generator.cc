#include "runtime/slim/math/generator.h"

#include <pthread.h>

#include <cmath>
#include <numbers>

namespace aoti::slim {
namespace {

constexpr std::uint64_t kDefaultSeed = 67280421310721;
constexpr std::size_t kShift = 397;

// The recurrence of MT19937: the next state word, from words i, i + 1 and i + 397.
std::uint32_t Twist(std::uint32_t word, std::uint32_t next, std::uint32_t shifted) {
  const std::uint32_t mixed = (word & 0x80000000) | (next & 0x7fffffff);
  return shifted ^ (mixed >> 1) ^ (0x9908b0df & (0 - (next & 1)));
}

}  // namespace

Generator& Generator::Default() {
  static Generator generator;
  // The thread that forks holds the mutex during fork(): no other thread exists in the child to
  // release it.
  static const int at_fork =
      pthread_atfork([] { generator.mutex_.lock(); }, [] { generator.mutex_.unlock(); },
                     [] { generator.mutex_.unlock(); });
  static_cast<void>(at_fork);
  return generator;
}

Generator::Generator() { Seed(kDefaultSeed); }

void Generator::Seed(std::uint64_t seed) {
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < kState; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  next_ = kState;
  next_normal_.reset();
}

void Generator::Refill() {
  std::uint32_t* state = state_.data();
  std::size_t i = 0;
  for (; i < kState - kShift; ++i) state[i] = Twist(state[i], state[i + 1], state[i + kShift]);
  for (; i < kState - 1; ++i) {
    state[i] = Twist(state[i], state[i + 1], state[i + kShift - kState]);
  }
  state[i] = Twist(state[i], state[0], state[kShift - 1]);
  next_ = 0;
}

double Generator::Normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double angle = 2 * std::numbers::pi * UniformDouble();
  const double radius = std::sqrt(-2 * std::log1p(-UniformDouble()));
  next_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace aoti::slim

extern "C" void aoti_slim_manual_seed(std::uint64_t seed) {
  aoti::slim::Generator& generator = aoti::slim::Generator::Default();
  const std::lock_guard lock(generator.mutex());
  generator.Seed(seed);
}
