// What sessions cost, beside a call of one session: nanoseconds per call.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "aoti/result.h"
#include "benchmarks/nanoseconds.h"
#include "benchmarks/stream.h"

namespace {

using benchmarks::Fail;
using benchmarks::Nanoseconds;
using benchmarks::Stream;

constexpr int kRounds = 50;
constexpr std::size_t kCallsPerRound = 2'000;
constexpr std::size_t kSessions = 1'000;

template <typename T>
T Unwrap(aoti::Result<T> result) {
  if (!result.ok()) Fail(result.error());
  return *std::move(result);
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
  const double call = Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t) { Call(origin); });
  std::vector<Stream::Session> sessions;
  for (std::size_t i = 0; i < kSessions; ++i) sessions.push_back(Unwrap(origin.Fork()));

  const auto print = [&](const char* what, double nanoseconds) {
    std::printf("%-48s %8.0f ns %7.2f of a call\n", what, nanoseconds, nanoseconds / call);
  };
  print("a call of the session of the call before", call);
  print(
      "a call of another session, of 1,000 in turn",
      Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t i) { Call(sessions[i % kSessions]); }));
  print("a fork, and its first call",
        Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t) { Call(Unwrap(origin.Fork())); }));
  print("a fork that never runs",
        Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t) { Unwrap(origin.Fork()); }));
}
