#include <cstdint>
#include <string>
#include <vector>

#include "examples/cc_pool/pooler.h"
#include "tests/expect.h"

using examples::cc_pool::Pooler;

int main() {
  const auto pooler = Pooler::Load();
  if (!pooler.ok()) {
    Expect(false, pooler.error().message());
    return 1;
  }
  const std::vector<std::int64_t> tokens = {7, 8, 9, 7, 8, 9};
  const bool mask[] = {true, true, true, true, false, false};
  const aoti::TensorRef<const bool, 2> given = {mask, {2, 3}};

  // Without the mask both sentences are equal; with it, the second one is its first token.
  for (const char* mode : {"mean", "max"}) {
    const auto all = pooler->Run({.tokens = {tokens, {2, 3}}, .mode = mode});
    const auto some = pooler->Run({.tokens = {tokens, {2, 3}}, .mask = given, .mode = mode});
    const auto first = pooler->Run({.tokens = {tokens.data(), {1, 1}}, .mode = mode});
    Expect(all.ok() && some.ok() && first.ok(), std::string("the calls of ") + mode);
    if (failures > 0) return 1;
    for (int i = 0; i < 8; ++i) {
      Expect(all->output(0, i) == all->output(1, i), "the sentences are equal");
      Expect(all->output(0, i) == some->output(0, i), "the whole sentence counts");
      Expect(first->output(0, i) == some->output(1, i), "the mask leaves the first token");
    }
  }

  const auto mean = pooler->Run({.tokens = {tokens, {2, 3}}});
  const auto max = pooler->Run({.tokens = {tokens, {2, 3}}, .mode = "max"});
  Expect(mean->output(0, 0) != max->output(0, 0), "the mode chooses the program");

  const auto chosen = Pooler::Explain({.tokens = {tokens, {2, 3}}, .mask = given, .mode = "max"});
  Expect(chosen.variant == std::string("mask_mode_max"), chosen.ToString());
  Expect(chosen.ToString() ==
             "mask_mode_max runs\n"
             "  not mask_mode_mean: input \"mode\" is \"max\", must be \"mean\"",
         chosen.ToString());

  const auto refused = pooler->Run({.tokens = {tokens, {2, 3}}, .mode = "median"});
  Expect(!refused.ok() && refused.error().code() == aoti::ErrorCode::kNoVariant, "the code");
  Expect(refused.error().message() ==
             "pooler: no variant takes the call\n"
             "  not mask_mode_mean: input \"mask\" is None, must be bool[batch, seq]\n"
             "  not mask_mode_max: input \"mask\" is None, must be bool[batch, seq]\n"
             "  not mask_none_mode_mean: input \"mode\" is \"median\", must be \"mean\"\n"
             "  not mask_none_mode_max: input \"mode\" is \"median\", must be \"max\"",
         refused.error().message());

  const auto missing = pooler->Run({.mask = given});
  Expect(missing.error().message().find(
             "input \"tokens\" is not given, must be int64[batch, seq]") != std::string::npos,
         missing.error().message());
  return failures == 0 ? 0 : 1;
}
