// Methods with variants and without on a GPU: the caller's stream, and outputs that stay there.

#include "tests/cuda/routes.h"

#include <vector>

#include "runtime/tests/check.h"

namespace tests::cuda {
namespace {

using Floats = std::vector<float>;

const Floats kX = {1, 2, 3, 4};

template <typename Output>
Floats Values(const Output& output) {
  return {output.span().begin(), output.span().end()};
}

TEST(WithoutOptionsOutputsAreOnTheHost) {
  const auto routes = Routes::Load();
  REQUIRE_OK(routes);
  const auto blended = routes->Blend({.x = {kX.data(), {4}}});
  REQUIRE_OK(blended);
  CHECK_TRUE(blended->output.has_value());
  if (!(blended->output.has_value())) return;
  CHECK_TRUE(Values(*blended->output) == Floats({2, 3, 4, 5}));
  CHECK_TRUE(!blended->output_1.has_value());
}

TEST(OutputsOfAVariantAreInputsOfTheNext) {
  const auto routes = Routes::Load();
  REQUIRE_OK(routes);
  const aoti::RunOptions stay = {.outputs_on_device = true};
  const auto doubled = routes->Twice({.x = {kX.data(), {4}}}, stay);
  REQUIRE_OK(doubled);
  CHECK_EQ(doubled->output.tensor().cuda_device(), 0);
  const auto more = routes->Blend({.x = doubled->output}, stay);
  REQUIRE_OK(more);
  CHECK_TRUE(more->output.has_value());
  if (!(more->output.has_value())) return;
  CHECK_EQ(more->output->tensor().cuda_device(), 0);
  const auto both = routes->Blend({.x = doubled->output, .other = *more->output});
  REQUIRE_OK(both);
  CHECK_TRUE(both->output_0.has_value() && both->output_1.has_value());
  if (!(both->output_0.has_value() && both->output_1.has_value())) return;
  CHECK_TRUE(Values(*both->output_0) == Floats({2 * 3, 4 * 5, 6 * 7, 8 * 9}));
  CHECK_TRUE(Values(*both->output_1) == Floats({2.5, 4.5, 6.5, 8.5}));
}

TEST(OnTheCallersStream) {
  const auto routes = Routes::Load();
  REQUIRE_OK(routes);
  const auto doubled = routes->Twice({.x = {kX.data(), {4}}}, {.outputs_on_device = true});
  REQUIRE_OK(doubled);
  void* const legacy = reinterpret_cast<void*>(1);  // cudaStreamLegacy
  const auto queued = routes->Blend({.x = doubled->output, .other = doubled->output},
                                    {.cuda_stream = legacy, .outputs_on_device = true});
  REQUIRE_OK(queued);
  CHECK_TRUE(queued->output_0.has_value());
  if (!(queued->output_0.has_value())) return;
  CHECK_EQ(queued->output_0->tensor().cuda_device(), 0);
  const auto read = routes->Twice({.x = *queued->output_0}, {.cuda_stream = legacy});
  REQUIRE_OK(read);
  CHECK_TRUE(Values(read->output) == Floats({8, 32, 72, 128}));
}

}  // namespace
}  // namespace tests::cuda

int main() { return aoti::testing::RunAllTests(); }
