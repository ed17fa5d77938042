// Prints how likely each 10 ms of a stream holds a voice:
//
//   arecord -f S16_LE -r 16000 -t raw | bazel run //examples/cc_stream

#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>

#include "examples/cc_stream/detector.h"

using examples::cc_stream::Detector;

int main() {
  const auto model = Detector::Load();
  if (!model.ok()) {
    std::cerr << model.error().message() << "\n";
    return 1;
  }
  // A server has one model, and a session for each of its streams.
  const auto stream = model->NewSession();
  if (!stream.ok()) {
    std::cerr << stream.error().message() << "\n";
    return 1;
  }
  std::array<std::int16_t, 160> pcm;
  std::array<float, 160> samples;
  while (std::fread(pcm.data(), sizeof(pcm), 1, stdin) == 1) {
    for (std::size_t i = 0; i < pcm.size(); ++i) samples[i] = static_cast<float>(pcm[i]) / 32768;
    const auto out = stream->Run({.samples = {samples.data(), {1, 160}}});
    if (!out.ok()) {
      std::cerr << out.error().message() << "\n";
      return 1;
    }
    std::cout << out->output.span()[0] << "\n";
  }
}
