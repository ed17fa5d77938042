#include "tests/variants/scaler.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tests/expect.h"

using tests::variants::Scaler;

int main() {
  const auto model = Scaler::Load();
  if (!model.ok()) {
    Expect(false, model.error().message());
    return 1;
  }
  const std::vector<float> x = {1, 1, 1, 1, 2, 2, 2, 2};
  const aoti::TensorRef<const float, 2> rows = {x, {2, 4}};
  const aoti::TensorRef<const float, 1> row = {x.data(), {4}};

  const auto session = model->NewSession();
  Expect(session.ok(), "a session");
  const auto two = session->Scale({.x = rows, .factor = 3});
  Expect(two.ok() && std::get<aoti::TypedTensor<float, 2>>(two->output)(1, 3) == 24, "two rows");
  const auto one = session->Scale({.x = row});
  Expect(one.ok() && std::get<aoti::TypedTensor<float, 1>>(one->output)(3) == 8,
         "a row, with the default of forward()");

  const auto plus = session->Count({});
  Expect(plus.ok() && plus->calls(0) == 2 && !plus->note, "both calls had one state");
  const auto minus = session->Count({.sign = -1});
  Expect(minus.ok() && minus->calls(0) == -2 && minus->note == "negated", "another program");
  Expect(model->Count({})->calls(0) == 0, "the state of the model is its own");

  Expect(Scaler::ExplainScale({.x = rows}).variant == std::string("even"), "divisible by 2");
  Expect(Scaler::ExplainScale({.x = row}).variant == std::string("vector"), "rank 1");
  const auto refused = Scaler::ExplainScale({.x = rows, .factor = 5});
  Expect(refused.variant == nullptr && refused.refusals.size() == 5, refused.ToString());
  const auto missing = model->Scale({.factor = 1});
  Expect(!missing.ok() && missing.error().code() == aoti::ErrorCode::kNoVariant &&
             missing.error().message().find("input \"x\" is not given") != std::string::npos,
         missing.ok() ? "" : missing.error().message());
  Expect(Scaler::Functions().size() == 2, "the functions without types");
  return failures == 0 ? 0 : 1;
}
