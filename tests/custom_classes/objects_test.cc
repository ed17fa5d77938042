// Objects on both runtimes: their values, how long they live, and constructors that throw.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/custom_classes/both.h"
#include "tests/custom_classes/both_on_libtorch.h"
#include "tests/expect.h"

namespace {

// How many objects of the class Counted there are.
template <typename Model>
std::int64_t Alive(const Model& model) {
  const std::vector<float> x = {0};
  const auto out = model.Run({.x = {x, {1}}});
  Expect(out.ok(), out.ok() ? "" : out.error().message());
  return out.ok() ? out->output_2(0) - 100 : -1;
}

template <typename Model>
void Run(const std::string& name) {
  const auto first = Model::Load();
  if (!first.ok()) return Expect(false, first.error().message());
  const std::vector<float> x = {10, 20};
  const auto out = first->Run({.x = {x, {2}}});
  if (!out.ok()) return Expect(false, out.error().message());
  for (int i = 0; i < 2; ++i) {
    // -(2 + 0.5 + 4 + 0.25) + 0.125 + 30 + 7 + 1 + 2 + 1000, twice for each of two rows, by
    // count().
    const float expected = (x[static_cast<std::size_t>(i)] + 1033.375F) * 4 * 3;
    Expect(out->output_0(i) == expected, name + ": what depends on every field");
  }
  Expect(out->output_1(1, 0) == 1 && out->output_1(2, 1) == 5, name + ": a tensor of the state");

  Expect(Alive(*first) == 1, name + ": one object");
  {
    const auto second = Model::Load();
    Expect(second.ok() && Alive(*second) == 1, name + ": models with the same weights share it");
  }
  Expect(Alive(*first) == 1, name + ": one of the two models is left");
}

// Constructors run when a model is loaded, if no other one has the object.
template <typename Model>
void Refuse(const std::string& name) {
  setenv("AOTI_TEST_ABSENT", "1", 1);
  const auto failed = Model::Load();
  unsetenv("AOTI_TEST_ABSENT");
  Expect(!failed.ok(), name + ": a constructor that throws");
  if (failed.ok()) return;
  const std::string& message = failed.error().message();
  Expect(message.find("object \"part.counted\" of the class tested_classes::Counted can't be "
                      "made: ") != std::string::npos,
         message);
  Expect(message.find("the device 100 is not there") != std::string::npos, message);
  const auto again = Model::Load();
  Expect(again.ok() && Alive(*again) == 1, name + ": the models before have none any more");
}

}  // namespace

int main() {
  setenv("AOTI_TEST_COUNT", "1", 1);
  Run<tests::custom_classes::Both>("slim");
  Refuse<tests::custom_classes::Both>("slim");
  Run<tests::custom_classes::BothOnLibtorch>("libtorch");
  Refuse<tests::custom_classes::BothOnLibtorch>("libtorch");
  return failures == 0 ? 0 : 1;
}
