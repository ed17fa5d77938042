// Methods in C++ whose results are structures and numbers; the weights are in this binary.

#include "tests/methods/speech.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/expect.h"

int main() {
  const auto model = tests::methods::Speech::Load();
  Expect(model.ok(), model.ok() ? "" : model.error().message());
  if (!model.ok()) return 1;

  const std::vector<float> audio(20, -0.5F);
  const auto encoded = model->Encode({.audio = {audio.data(), {5, 4}}});
  Expect(encoded.ok(), encoded.ok() ? "" : encoded.error().message());
  if (!encoded.ok()) return 1;
  Expect(encoded->memory_length == 5, "a number that depends on a size");
  Expect(std::abs(encoded->loudness - 0.5) < 1e-6, "a number that depends on data");
  Expect(encoded->version == 2, "a constant");

  const std::vector<std::int64_t> tokens = {3, 9};
  const auto out =
      model->Forward({.tokens = {tokens.data(), {2}}, .memory = encoded->memory_values, .k = 3});
  Expect(out.ok(), out.ok() ? "" : out.error().message());
  if (!out.ok()) return 1;
  Expect(out->output_0.size(0) == 2 && out->output_0.size(1) == 5, "logits");
  Expect(out->output_1_0_length == 3 && out->output_1_0_values.size(0) == 3, "the best");
  Expect(out->output_1_1 == static_cast<double>(out->output_1_0_values(0)), "the first of them");

  for (const aoti::Model& method : model->methods()) {
    Expect(method.isa()[0] == 'x', "one of two instruction sets");
  }
  return failures == 0 ? 0 : 1;
}
