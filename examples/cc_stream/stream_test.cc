// Many streams on one model: each has the results that it has alone.

#include <cmath>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/cc_stream/detector.h"
#include "tests/expect.h"

using examples::cc_stream::Detector;

namespace {

constexpr int kStreams = 100;
constexpr int kChunks = 20;
constexpr int kThreads = 4;

// One chunk of a stream's audio: a tone whose pitch is the stream's.
std::vector<float> Audio(int stream, int chunk) {
  std::vector<float> samples(160);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const float t = static_cast<float>(chunk * 160 + static_cast<int>(i)) / 16000;
    samples[i] = std::sin(t * static_cast<float>(100 + 37 * stream));
  }
  return samples;
}

float Hear(const Detector& stream, const std::vector<float>& samples) {
  const auto out = stream.Run({.samples = {samples.data(), {1, 160}}});
  Expect(out.ok(), out.ok() ? "" : out.error().message());
  return out.ok() ? out->output.span()[0] : -1;
}

std::vector<Detector::Session> Sessions(const Detector& model, int count) {
  std::vector<Detector::Session> sessions;
  for (int i = 0; i < count; ++i) {
    auto session = model.NewSession();
    Expect(session.ok(), session.ok() ? "" : session.error().message());
    if (session.ok()) sessions.push_back(*std::move(session));
  }
  return sessions;
}

void StreamsDoNotDisturbEachOther(const Detector& model) {
  std::vector<std::vector<float>> alone(kStreams);
  for (int s = 0; s < kStreams; ++s) {
    const auto session = Sessions(model, 1);
    for (int c = 0; c < kChunks; ++c) alone[s].push_back(Hear(session[0], Audio(s, c)));
  }
  Expect(alone[0] != alone[1], "streams differ");
  Expect(alone[0][0] != alone[0][kChunks - 1], "chunks differ");

  const auto sessions = Sessions(model, kStreams);
  std::vector<std::vector<float>> together(kStreams);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int c = 0; c < kChunks; ++c) {
        for (int s = t; s < kStreams; s += kThreads) {
          together[s].push_back(Hear(sessions[s], Audio(s, c)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Expect(together == alone, "100 streams on 4 threads have the results that each has alone");
}

void AForkGoesOnFromWhereItWasMade(const Detector& model) {
  const auto sessions = Sessions(model, 2);
  const auto& stream = sessions[0];
  const auto& straight = sessions[1];
  Hear(stream, Audio(1, 0));
  Hear(straight, Audio(1, 0));
  const auto fork = stream.Fork();
  const auto saved = stream.Save();
  Expect(fork.ok() && saved.ok(), "a fork and a saved state");
  if (!fork.ok() || !saved.ok()) return;
  Hear(stream, Audio(2, 0));
  const float expected = Hear(straight, Audio(3, 1));
  Expect(Hear(*fork, Audio(3, 1)) == expected, "the fork has not heard what its origin heard");
  Expect(Hear(stream, Audio(3, 1)) != expected, "the origin has");
  Expect(!stream.Load(*saved), "the saved state is loaded");
  Expect(Hear(stream, Audio(3, 1)) == expected, "the loaded state is the saved one");

  Expect(!stream.Reset(), "reset");
  const auto fresh = model.NewSession();
  Expect(fresh.ok() && Hear(stream, Audio(4, 0)) == Hear(*fresh, Audio(4, 0)), "a reset session");
}

void OtherStatesAreRefused(const Detector& model) {
  const auto sessions = Sessions(model, 1);
  const auto error = sessions[0].Load("no file");
  Expect(error.has_value(), "an error");
  if (!error) return;
  const std::string message = error->message();
  Expect(message ==
             "detector: the values of the saved state: not a valid safetensors file: it has "
             "only 7 bytes",
         message);
}

}  // namespace

int main() {
  const auto model = Detector::Load();
  Expect(model.ok(), model.ok() ? "" : model.error().message());
  if (!model.ok()) return 1;
  StreamsDoNotDisturbEachOther(*model);
  AForkGoesOnFromWhereItWasMade(*model);
  OtherStatesAreRefused(*model);
  return failures == 0 ? 0 : 1;
}
