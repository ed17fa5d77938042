// The methods of one model share weights and state, and pass outputs on without a copy.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "examples/cc_reverse/reverser.h"
#include "tests/expect.h"

using examples::cc_reverse::Reverser;

namespace {

Reverser::EncodeOutputs Encode(const Reverser& model, const std::vector<std::int64_t>& digits) {
  const auto size = static_cast<std::int64_t>(digits.size());
  auto encoded = model.Encode({.digits = {digits.data(), {1, size}}});
  Expect(encoded.ok(), encoded.ok() ? "" : encoded.error().message());
  return encoded.ok() ? *std::move(encoded) : Reverser::EncodeOutputs{};
}

std::int64_t Decode(const Reverser& model, const Reverser::EncodeOutputs& encoded) {
  const auto decoded = model.Decode({.memory = encoded.output});
  Expect(decoded.ok(), decoded.ok() ? "" : decoded.error().message());
  if (!decoded.ok()) return -1;
  const std::span<const float> logits = decoded->output.span();
  return std::ranges::max_element(logits) - logits.begin();
}

void Reverses(const Reverser& model) {
  for (std::vector<std::int64_t> digits :
       {std::vector<std::int64_t>{1, 2, 3, 4}, {7}, {9, 0, 0, 5}}) {
    // Encoding begins again at the first step, of which decoding keeps count.
    const auto encoded = Encode(model, digits);
    std::ranges::reverse(digits);
    for (const std::int64_t digit : digits) {
      const std::int64_t got = Decode(model, encoded);
      Expect(got == digit, "decoded " + std::to_string(got) + ", not " + std::to_string(digit));
    }
  }
}

}  // namespace

int main() {
  const auto model = Reverser::Load();
  Expect(model.ok(), model.ok() ? "" : model.error().message());
  if (!model.ok()) return 1;
  Reverses(*model);

  // Each loaded object has a state of its own.
  const auto other = Reverser::Load();
  Expect(other.ok(), "a second object");
  if (!other.ok()) return 1;
  const auto encoded = Encode(*model, {3, 4});
  Expect(Decode(*other, encoded) == 4, "the other object's first step");
  Expect(Decode(*model, encoded) == 4, "the first step");
  Expect(Decode(*model, encoded) == 3, "the second step");

  // A session is a state that both methods share, over the same weights.
  const auto session = model->NewSession();
  Expect(session.ok(), session.ok() ? "" : session.error().message());
  if (!session.ok()) return 1;
  Reverses(*session);
  const auto memory = Encode(*session, {1, 2, 3});
  Expect(Decode(*session, memory) == 3, "the session's first step");
  const auto fork = session->Fork();
  Expect(fork.ok(), fork.ok() ? "" : fork.error().message());
  if (!fork.ok()) return 1;
  Expect(Decode(*session, memory) == 2, "the session's second step");
  Expect(Decode(*session, memory) == 1, "the session's third step");
  Expect(Decode(*fork, memory) == 2, "the fork's second step");

  // Both methods have the same table of weights, with each tensor once.
  const auto specs = Reverser::Specs();
  Expect(specs.size() == 2, "two methods");
  Expect(specs[0]->weights.data() == specs[1]->weights.data(), "one table of weights");
  Expect(specs[0]->weights.size() == 3, "three weights");
  Expect(std::string(model->methods()[1].name()) == "reverser.decode", "the name");

  // The built weights again: what they are makes no difference, that they are taken does.
  Expect(!model->SwapWeights(""), "the weights that were built with the model");
  Expect(Decode(*model, Encode(*model, {5, 6})) == 6, "after the swap");
  const auto missing = model->SwapWeights("/does/not/exist");
  Expect(missing.has_value() && missing->code() == aoti::ErrorCode::kWeightsNotFound, "no weights");

  // Errors name model and method.
  const std::vector<std::int64_t> wrong = {12};
  const auto refused = model->Encode({.digits = {wrong.data(), {1, 1}}});
  Expect(!refused.ok(), "12 is no digit");
  if (!refused.ok()) {
    const std::string message = refused.error().message();
    Expect(message.starts_with("reverser.encode: input \"digits\""), message);
  }
  return failures == 0 ? 0 : 1;
}
