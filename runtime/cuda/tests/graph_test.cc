// Calls that are recorded as CUDA graphs, in the emulator, which counts captures and launches.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/session.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/tests/support.h"

namespace aoti::testing {
namespace {

// ptx_emulator::Statistics.
struct Counts {
  std::uint64_t instructions, launches, live_bytes, peak_bytes, live_modules, live_streams,
      failures, captures, graph_launches, live_graphs;
};

Counts Now() {
  static auto* const get = reinterpret_cast<void (*)(Counts*)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "ptx_emulator_statistics"));
  Counts counts = {};
  get(&counts);
  return counts;
}

std::uint64_t Captures(const Counts& since) { return Now().captures - since.captures; }
std::uint64_t Replays(const Counts& since) { return Now().graph_launches - since.graph_launches; }

Result<Model> LoadAdder(int num_runners = 1) {
  return Model::Load(AdderSpec(),
                     {.weights_path = Row(), .num_runners = num_runners, .cuda_graphs = true});
}

// Whether y is x + row, and the other output is x transposed, for x = first, first + 1, ...
void CheckAdder(const Model& model, std::int64_t batch, float first,
                const Floats& row = {10, 20, 30, 40}) {
  Floats x;
  Floats y;
  Floats transposed;
  for (std::int64_t i = 0; i < batch * 4; ++i) {
    x.push_back(first + static_cast<float>(i));
    y.push_back(x.back() + row[static_cast<std::size_t>(i % 4)]);
  }
  for (std::int64_t column = 0; column < 4; ++column) {
    for (std::int64_t i = 0; i < batch; ++i) {
      transposed.push_back(first + static_cast<float>(i * 4 + column));
    }
  }
  const auto out = Run(model, x, {batch, 4});
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == y);
  CHECK_TRUE(ToFloats((*out)[1]) == transposed);
}

TEST(TheSecondCallWithTheSameSizesIsRecorded) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const Counts before = Now();
  float first = 0;
  for (const std::int64_t batch : {3, 5, 3, 0, 3, 5, 5, 0, 3, 0})
    CheckAdder(*model, batch, first++);
  CHECK_EQ(Captures(before), std::uint64_t{3});
  CHECK_EQ(Replays(before), std::uint64_t{7});
}

TEST(WithoutTheOptionNothingIsRecorded) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
  REQUIRE_OK(model);
  const Counts before = Now();
  for (int i = 0; i < 3; ++i) CheckAdder(*model, 2, 0);
  CHECK_EQ(Captures(before), std::uint64_t{0});
}

TEST(GraphsAndMemoryAreBounded) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  for (std::int64_t batch = 1; batch <= 40; ++batch) {
    for (int i = 0; i < 3; ++i) CheckAdder(*model, batch, 1);
    CHECK_TRUE(Now().live_graphs <= 16);
  }
  const Counts before = Now();
  for (int i = 0; i < 5; ++i) {
    for (const std::int64_t batch : {40, 39, 25}) CheckAdder(*model, batch, static_cast<float>(i));
  }
  CHECK_EQ(Captures(before), std::uint64_t{0});
  CHECK_EQ(Now().live_bytes, before.live_bytes);
}

TEST(SwappedWeightsAreUsed) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  for (int i = 0; i < 3; ++i) CheckAdder(*model, 2, 0);
  CHECK_TRUE(!model->SwapWeights(Weights("row", {1, 2, 3, 4}, "other")));
  const Counts before = Now();
  for (int i = 0; i < 3; ++i) CheckAdder(*model, 2, 0, {1, 2, 3, 4});
  CHECK_EQ(Captures(before), std::uint64_t{1});
  CHECK_EQ(Now().live_graphs, std::uint64_t{1});
}

TEST(EachSessionHasItsOwnGraph) {
  const auto model =
      Model::Load(CounterSpec(), {.weights_path = Total(), .num_runners = 1, .cuda_graphs = true});
  REQUIRE_OK(model);
  const auto a = model->NewSession();
  REQUIRE_OK(a);
  const auto b = model->NewSession();
  REQUIRE_OK(b);
  const Counts before = Now();
  for (int i = 0; i < 4; ++i) {
    const auto n = static_cast<float>(i);
    CHECK_TRUE(Count(a->model()) == Floats({2 + n, 3 + n, 4 + n, 5 + n}));
    CHECK_TRUE(Count(b->model()) == Floats({2 + n, 3 + n, 4 + n, 5 + n}));
  }
  CHECK_EQ(Captures(before), std::uint64_t{2});
  CHECK_EQ(Replays(before), std::uint64_t{6});
}

TEST(SessionsAreForkedLoadedAndReset) {
  const auto model =
      Model::Load(CounterSpec(), {.weights_path = Total(), .num_runners = 1, .cuda_graphs = true});
  REQUIRE_OK(model);
  const auto a = model->NewSession();
  REQUIRE_OK(a);
  for (int i = 0; i < 3; ++i) Count(a->model());
  const auto saved = a->Save();
  REQUIRE_OK(saved);
  const auto b = a->Fork();
  REQUIRE_OK(b);
  for (float n = 5; n < 9; ++n) {
    CHECK_TRUE(Count(a->model()) == Floats({n, n + 1, n + 2, n + 3}));
    CHECK_TRUE(Count(b->model()) == Floats({n, n + 1, n + 2, n + 3}));
  }
  CHECK_TRUE(!a->Reset());
  for (float n = 2; n < 5; ++n) CHECK_TRUE(Count(a->model()) == Floats({n, n + 1, n + 2, n + 3}));
  CHECK_TRUE(!a->Load(*saved));
  for (float n = 5; n < 8; ++n) CHECK_TRUE(Count(a->model()) == Floats({n, n + 1, n + 2, n + 3}));
}

TEST(IndicesAreChecked) {
  const auto model = Model::Load(IndexerSpec(), {.num_runners = 1, .cuda_graphs = true});
  REQUIRE_OK(model);
  Floats good = {3, 0, 0, 0};
  Floats bad = {7, 0, 0, 0};
  const Counts before = Now();
  for (int i = 0; i < 3; ++i) {
    const auto out = Run(*model, good, {4});
    REQUIRE_OK(out);
    CHECK_TRUE(ToFloats((*out)[0]) == good);
    CHECK_ERROR(Run(*model, bad, {4}), ErrorCode::kExecutionFailed,
                "indexer: index 7 is out of range for a dimension of size 4");
  }
  CHECK_EQ(Captures(before), std::uint64_t{1});
}

// What the driver has in device memory.
Floats Downloaded(const Tensor& tensor) {
  Floats values(static_cast<std::size_t>(tensor.numel()));
  cuda::Driver().MemcpyDtoHAsync(values.data(), cuda::ToPointer(tensor.data()), 4 * values.size(),
                                 nullptr);
  return values;
}

TEST(ResultsOnTheDeviceStayWhenTheGraphRunsAgain) {
  const auto adder = LoadAdder();
  REQUIRE_OK(adder);
  std::vector<Tensor> kept;
  Tensor* last = nullptr;
  Floats x = {1, 2, 3, 4};
  const Counts before = Now();
  for (int i = 0; i < 6; ++i) {
    // The first input is in the CPU's memory, the others are the results on the device.
    const std::vector<std::int64_t> sizes = {1, 4};
    TensorView view = {.data = last == nullptr ? x.data() : last->data(),
                       .dtype = DType::kFloat32,
                       .sizes = sizes,
                       .strides = {}};
    if (last != nullptr) view.cuda_device = 0;
    auto out = adder->Run(std::vector{view}, {.outputs_on_device = true});
    REQUIRE_OK(out);
    kept.push_back(std::move((*out)[0]));
    last = &kept.back();
  }
  CHECK_EQ(Captures(before), std::uint64_t{1});
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto n = static_cast<float>(i + 1);
    CHECK_TRUE(Downloaded(kept[i]) == Floats({1 + 10 * n, 2 + 20 * n, 3 + 30 * n, 4 + 40 * n}));
  }
}

TEST(EachStreamHasItsOwnGraph) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  Floats x = {1, 2, 3, 4};
  const std::vector<std::int64_t> sizes = {1, 4};
  const TensorView view = {
      .data = x.data(), .dtype = DType::kFloat32, .sizes = sizes, .strides = {}};
  cuda::CuStream streams[2] = {};
  const Counts before = Now();
  // A stream is made in the context that is current.
  cuda::CuContext context = nullptr;
  CHECK_EQ(cuda::Driver().PrimaryCtxRetain(&context, 0), cuda::kSuccess);
  CHECK_EQ(cuda::Driver().CtxPushCurrent(context), cuda::kSuccess);
  for (auto& stream : streams) CHECK_EQ(cuda::Driver().StreamCreate(&stream, 0), cuda::kSuccess);
  CHECK_EQ(cuda::Driver().CtxPopCurrent(&context), cuda::kSuccess);
  for (int i = 0; i < 4; ++i) {
    for (auto* stream : streams) {
      const auto out = model->Run(std::vector{view}, {.cuda_stream = stream});
      REQUIRE_OK(out);
      CHECK_TRUE(ToFloats((*out)[0]) == Floats({11, 22, 33, 44}));
    }
  }
  CHECK_EQ(Captures(before), std::uint64_t{2});
  for (auto* stream : streams) {
    CHECK_EQ(cuda::Driver().StreamDestroy(stream), cuda::kSuccess);
  }
  CHECK_EQ(cuda::Driver().PrimaryCtxRelease(0), cuda::kSuccess);
}

}  // namespace
}  // namespace aoti::testing

int main() {
  const int result = aoti::testing::RunAllTests();
  return aoti::testing::Now().live_graphs == 0 ? result : 1;
}
