// All arguments of a signature: forward(tokens, mask=None, temperature=1.0, causal=True,
// mode="mean", k=5).

#include "tests/variants/attender.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/expect.h"

namespace {

using tests::variants::Attender;

void Test() {
  const auto model = Attender::Load();
  if (!model.ok()) return Expect(false, model.error().message());
  const std::vector<std::int64_t> ids = {3, 1, 4, 1, 5, 9};
  const aoti::TensorRef<const std::int64_t, 2> tokens = {ids, {2, 3}};

  const auto plain = model->Run({.tokens = tokens});
  if (!plain.ok()) return Expect(false, plain.error().message());
  Expect(plain->output_0.size(0) == 2 && plain->output_0.size(1) == 5, "k is 5 by default");

  const auto same =
      model->Run({.tokens = tokens, .temperature = 1.0, .causal = true, .mode = "mean", .k = 5});
  Expect(same.ok() && same->output_0(1, 4) == plain->output_0(1, 4), "the other defaults");

  // A mask of what is true everywhere changes nothing; its program is another one.
  const bool all[] = {true, true, true, true, true, true};
  const Attender::Inputs masked = {.tokens = tokens,
                                   .mask = aoti::TensorRef<const bool, 2>{all, {2, 3}},
                                   .temperature = 0.5,
                                   .causal = false,
                                   .mode = "max",
                                   .k = 1};
  Expect(Attender::Explain(masked).variant == std::string("mask_causal_false_mode_max"),
         Attender::Explain(masked).ToString());
  Attender::Inputs unmasked = masked;
  unmasked.mask.reset();
  const auto one = model->Run(masked);
  const auto other = model->Run(unmasked);
  Expect(one.ok() && other.ok() && std::abs(one->output_0(0, 0) - other->output_0(0, 0)) < 1e-6,
         "the mask");
  unmasked.causal = true;
  const auto causal = model->Run(unmasked);
  Expect(causal.ok() && causal->output_0(1, 0) != other->output_0(1, 0), "causal");
  unmasked.temperature = 2;
  const auto warm = model->Run(unmasked);
  Expect(warm.ok() && warm->output_0(0, 0) != causal->output_0(0, 0), "the temperature");

  const auto refused = model->Run({.tokens = tokens, .k = 9});
  Expect(!refused.ok() && refused.error().code() == aoti::ErrorCode::kNoVariant, "k is 9");
}

}  // namespace

int main() {
  Test();
  return failures != 0;
}
