// One target on both devices, in one process: the same results, and the same for sessions.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/tests/check.h"
#include "tests/cuda/decoder.h"

namespace tests::cuda {
namespace {

using aoti::DeviceType;

// The logits of some tokens, one after the other.
template <typename Model>
std::vector<float> Decode(const Model& model, const std::vector<std::int64_t>& tokens) {
  std::vector<float> logits;
  for (const std::int64_t token : tokens) {
    const auto out = model.Run({.token = {&token, {1}}});
    CHECK_TRUE(out.ok());
    if (!out.ok()) return logits;
    for (const float logit : out->output.span()) logits.push_back(logit);
  }
  return logits;
}

void CheckClose(const std::vector<float>& actual, const std::vector<float>& expected) {
  CHECK_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    CHECK_TRUE(std::abs(actual[i] - expected[i]) < 1e-5F);
  }
}

TEST(TheSameResultsOnBothDevices) {
  const auto cpu = Decoder::Load();
  const auto cuda = Decoder::Load({.device = DeviceType::kCuda});
  CHECK_TRUE(cpu.ok() && cuda.ok());
  if (!cpu.ok() || !cuda.ok()) return;
  CHECK_TRUE(cpu->model().device() == DeviceType::kCpu);
  CHECK_TRUE(cuda->model().device() == DeviceType::kCuda);
  const std::vector<float> expected = Decode(*cpu, {3, 7, 7});
  CHECK_EQ(expected.size(), std::size_t{3} * 20);
  CheckClose(Decode(*cuda, {3, 7, 7}), expected);

  const auto session = cuda->NewSession();
  CHECK_TRUE(session.ok());
  if (session.ok()) CheckClose(Decode(*session, {3, 7, 7}), expected);
}

TEST(NamedTheCpuIsTheDefault) {
  const auto cpu = Decoder::Load({.device = DeviceType::kCpu});
  CHECK_TRUE(cpu.ok());
  if (cpu.ok()) CHECK_TRUE(cpu->model().device() == DeviceType::kCpu);
}

}  // namespace
}  // namespace tests::cuda

int main() { return aoti::testing::RunAllTests(); }
