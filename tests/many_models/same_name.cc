#include "tests/many_models/same_name.h"

#include <vector>

#include "tests/expect.h"
#include "tests/many_models/affineV2.h"

using tests::many_models::AffineV2;

float AnswerOfTheOther(float x) {
  const auto model = AffineV2::Load();
  Expect(model.ok(), model.ok() ? "" : model.error().message());
  if (!model.ok()) return 0;
  Expect(model->model().isa() == std::string_view("x86-64-v3"), "the other model's class");
  const std::vector<float> values(4, x);
  const auto out = model->Run({.x = {values.data(), {1, 4}}});
  Expect(out.ok(), out.ok() ? "" : out.error().message());
  return out.ok() ? out->output.data()[3] : 0;
}

std::string_view ProvenanceOfTheOther() { return AffineV2::Provenance(); }
