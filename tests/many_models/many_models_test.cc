// Several models, and two versions of one model, in one binary: each has its own code, weights and
// state.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/expect.h"
#include "tests/many_models/affine_v1.h"
#include "tests/many_models/affine_v2.h"
#include "tests/many_models/counter.h"
#include "tests/many_models/same_name.h"

namespace {

using tests::many_models::AffineV1;
using tests::many_models::AffineV2;
using tests::many_models::Counter;

template <class Model>
Model Load(const char* name) {
  auto model = Model::Load();
  if (!model.ok()) {
    std::fprintf(stderr, "%s: %s\n", name, model.error().message().c_str());
    std::exit(1);
  }
  return *std::move(model);
}

// The model's answer to a batch of rows that all hold `value`; every number must be the same.
template <class Model>
float Answer(const Model& model, float value, std::size_t batch, const char* name) {
  const std::vector<float> x(batch * 4, value);
  auto out = model.Run({.x = {x.data(), {static_cast<std::int64_t>(batch), 4}}});
  if (!out.ok()) {
    Expect(false, std::string(name) + ": " + out.error().message());
    return 0;
  }
  Expect(out->output.size(0) == static_cast<std::int64_t>(batch), std::string(name) + ": batch");
  for (std::size_t i = 0; i < batch * 4; ++i) {
    Expect(out->output.data()[i] == out->output.data()[0], std::string(name) + ": uniform output");
  }
  return out->output.data()[0];
}

}  // namespace

int main() {
  const auto first = Load<AffineV1>("affine_v1");
  const auto second = Load<AffineV2>("affine_v2");
  const auto counter = Load<Counter>("counter");
  const auto other_counter = Load<Counter>("counter, loaded again");

  for (std::size_t batch : {1, 3, 16}) {
    Expect(Answer(first, 5, batch, "affine_v1") == 11, "2 * 5 + 1");
    Expect(Answer(second, 5, batch, "affine_v2") == 5, "-5 + 10");
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    Expect(AnswerOfTheOther(5) == 5, "the same program for another ISA");
    Expect(second.model().isa() == std::string_view("x86-64"), "classes of one name");
  }
#endif

  // State belongs to what was loaded, not to the program.
  Expect(Answer(counter, 0, 1, "counter") == 1, "first call");
  Expect(Answer(counter, 0, 1, "counter") == 2, "second call");
  Expect(Answer(other_counter, 0, 1, "counter") == 1, "first call of another copy");
  Expect(Answer(counter, 0, 1, "counter") == 3, "third call");

  // One model, many threads.
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        const std::vector<float> x(8, value);
        auto out = first.Run({.x = {x.data(), {2, 4}}});
        wrong[t] += !out.ok() || out->output.data()[7] != 2 * value + 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) Expect(wrong[t] == 0, "thread " + std::to_string(t));

  // Each tells what it was made of.
  const std::string_view provenance = AffineV1::Provenance();
  Expect(provenance.starts_with("{") && provenance.ends_with("}\n"), std::string(provenance));
  Expect(provenance.find("//tests/many_models:affine_v1") != provenance.npos, "the model's label");
  Expect(AffineV2::Provenance() != ProvenanceOfTheOther(), "for another ISA");

  // The declared range holds in every version.
  const std::vector<float> x(17 * 4);
  auto out = first.Run({.x = {x.data(), {17, 4}}});
  Expect(!out.ok(), "17 rows are too many");
  if (!out.ok()) {
    const std::string want = "affine_v1: input \"x\": dim 0 (batch) is 17, must be in 1..16";
    Expect(out.error().message() == want, out.error().message());
  }
  return failures != 0;
}
