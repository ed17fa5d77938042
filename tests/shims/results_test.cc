// Results of every kind: tensors and numbers are typed fields, constants are known at compile time.

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/expect.h"
#include "tests/shims/structured.h"

namespace {

using tests::shims::Structured;
using Outputs = Structured::Outputs;

static_assert(std::is_same_v<decltype(Outputs::logits), aoti::TypedTensor<float, 2>>);
static_assert(std::is_same_v<decltype(Outputs::loss_count), std::int64_t>);
static_assert(std::is_same_v<decltype(Outputs::points_0_weight), double>);
static_assert(std::is_same_v<decltype(Outputs::many), bool>);
static_assert(Outputs::points_1_weight == 0.25);
static_assert(Outputs::classes == 4);
static_assert(Outputs::mode == std::string_view("last"));

void Test() {
  auto model = Structured::Load();
  if (!model.ok()) return Expect(false, model.error().message());
  for (const int batch : {1, 9}) {
    std::vector<float> x(static_cast<std::size_t>(batch) * 4, 1.0f);
    x.back() = -1.0f;
    auto out = model->Run({.x = {x, {batch, 4}}, .k = 3});
    if (!out.ok()) return Expect(false, out.error().message());
    Expect(out->logits(batch - 1, 3) == -2.0f, "logits");
    Expect(out->cache_0(0, 0) == 2.0f, "cache[0]");
    Expect(out->cache_1_0() == static_cast<float>(batch * 4 - 2), "cache[1][0]");
    Expect(out->loss_count == batch * 3, "a number of a size and an input");
    Expect(out->points_0_weight == batch / 2.0, "a quotient");
    Expect(out->mean == static_cast<double>(out->loss_value()), "a number out of a tensor");
    Expect(out->many == (batch > 8), "a comparison of a size");
    Expect(!out->positive, "a bool out of a tensor");
    Expect(out->mode == "last" && out->classes == 4, "constants");
  }
}

}  // namespace

int main() {
  Test();
  return failures != 0;
}
