// What sessions cost, beside a call of one session: nanoseconds per call.
//
// Each number is the least of many rounds' means, because whatever else the machine does only adds
// to it.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "aoti/error.h"
#include "aoti/result.h"
#include "benchmarks/stream.h"

namespace {

using benchmarks::Stream;

constexpr int kRounds = 50;
constexpr int kCallsPerRound = 2'000;
constexpr std::size_t kSessions = 1'000;

[[noreturn]] void Fail(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}

template <typename T>
T Unwrap(aoti::Result<T> result) {
  if (!result.ok()) Fail(result.error());
  return *std::move(result);
}

// `body(i)` makes the i-th call.
template <typename Body>
double Nanoseconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kCallsPerRound; ++i) body(static_cast<std::size_t>(i));
    const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
    best = std::min(best, spent.count() / kCallsPerRound);
  }
  return best;
}

void Call(const Stream& stream) {
  static const std::vector<float> row(64);
  static constexpr std::array<std::int64_t, 2> kSizes = {1, 64};
  const auto outputs = stream.Run({.x = {row, kSizes}});
  if (!outputs.ok()) Fail(outputs.error());
}

}  // namespace

int main() {
  const Stream model = Unwrap(Stream::Load({.threads = 1}));
  const Stream::Session origin = Unwrap(model.NewSession());
  const double call = Nanoseconds([&](std::size_t) { Call(origin); });
  std::vector<Stream::Session> sessions;
  for (std::size_t i = 0; i < kSessions; ++i) sessions.push_back(Unwrap(origin.Fork()));

  const auto print = [&](const char* what, double nanoseconds) {
    std::printf("%-48s %8.0f ns %7.2f of a call\n", what, nanoseconds, nanoseconds / call);
  };
  print("a call of the session of the call before", call);
  print("a call of another session, of 1,000 in turn",
        Nanoseconds([&](std::size_t i) { Call(sessions[i % kSessions]); }));
  print("a fork, and its first call",
        Nanoseconds([&](std::size_t) { Call(Unwrap(origin.Fork())); }));
  print("a fork that never runs", Nanoseconds([&](std::size_t) { Unwrap(origin.Fork()); }));
}
