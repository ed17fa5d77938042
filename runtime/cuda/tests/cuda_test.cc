// Programs for CUDA. These tests pass with every driver that has a device of sm_75 or newer.

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/session.h"
#include "runtime/cuda/tests/support.h"

namespace aoti::testing {
namespace {

// What the adder returns for x = 0, 1, 2, ...
void CheckAdder(const Model& model, std::int64_t batch) {
  Floats x;
  Floats y;
  Floats transposed;
  for (std::int64_t i = 0; i < batch * 4; ++i) {
    x.push_back(static_cast<float>(i));
    y.push_back(static_cast<float>(i + 10 * (i % 4 + 1)));
  }
  for (std::int64_t column = 0; column < 4; ++column) {
    for (std::int64_t row = 0; row < batch; ++row) {
      transposed.push_back(static_cast<float>(row * 4 + column));
    }
  }
  const auto out = Run(model, x, {batch, 4});
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == y);
  CHECK_TRUE(ToFloats((*out)[1]) == transposed);
}

TEST(InputsAreUploadedAndOutputsDownloaded) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
  REQUIRE_OK(model);
  for (const std::int64_t batch : {3, 1, 100, 0, 7, 100}) CheckAdder(*model, batch);
}

TEST(CallsOfManyThreadsRunAtTheSameTime) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row(), .num_runners = 3});
  REQUIRE_OK(model);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&model, t] {
      for (int i = 0; i < 20; ++i) CheckAdder(*model, t + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(AnInputInAnotherLayoutIsCopied) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
  REQUIRE_OK(model);
  const Floats columns = {0, 4, 1, 5, 2, 6, 3, 7};
  const std::vector<std::int64_t> sizes = {2, 4};
  const std::vector<std::int64_t> strides = {1, 2};
  const TensorView view = {.data = const_cast<float*>(columns.data()),
                           .dtype = DType::kFloat32,
                           .sizes = sizes,
                           .strides = strides};
  const auto out = model->Run(std::vector{view});
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == Floats({10, 21, 32, 43, 14, 25, 36, 47}));
}

TEST(WeightsAreSwapped) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
  REQUIRE_OK(model);
  CheckAdder(*model, 2);
  CHECK_TRUE(!model->SwapWeights(Weights("row", {1, 2, 3, 4}, "other")));
  Floats x = {0, 0, 0, 0};
  const auto out = Run(*model, x, {1, 4});
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == Floats({1, 2, 3, 4}));
}

TEST(StateStaysOnTheDevice) {
  const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
  REQUIRE_OK(model);
  CHECK_TRUE(Count(*model) == Floats({2, 3, 4, 5}));
  CHECK_TRUE(Count(*model) == Floats({3, 4, 5, 6}));
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  CHECK_TRUE(Count(session->model()) == Floats({2, 3, 4, 5}));
  CHECK_TRUE(Count(*model) == Floats({4, 5, 6, 7}));
}

TEST(SessionsAreForkedSavedLoadedAndReset) {
  const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
  REQUIRE_OK(model);
  const auto a = model->NewSession();
  REQUIRE_OK(a);
  const auto unused = a->Save();
  REQUIRE_OK(unused);
  CHECK_TRUE(Count(a->model()) == Floats({2, 3, 4, 5}));
  const auto b = a->Fork();
  REQUIRE_OK(b);
  const auto saved = a->Save();
  REQUIRE_OK(saved);
  CHECK_TRUE(Count(a->model()) == Floats({3, 4, 5, 6}));
  CHECK_TRUE(Count(a->model()) == Floats({4, 5, 6, 7}));
  CHECK_TRUE(Count(b->model()) == Floats({3, 4, 5, 6}));
  CHECK_TRUE(!b->Load(*saved));
  const auto again = b->Save();  // from the CPU's memory, where Load() put it
  REQUIRE_OK(again);
  CHECK_TRUE(*again == *saved);
  CHECK_TRUE(Count(b->model()) == Floats({3, 4, 5, 6}));
  CHECK_TRUE(!b->Reset());
  CHECK_TRUE(Count(b->model()) == Floats({2, 3, 4, 5}));
  CHECK_TRUE(!b->Load(*unused));
  CHECK_TRUE(Count(b->model()) == Floats({2, 3, 4, 5}));
}

TEST(MethodsWorkOnOneState) {
  const ProgramSpec* specs[] = {&CounterSpec(), &ReaderSpec()};
  const auto methods = Model::LoadMethods(specs, {.weights_path = Total()});
  REQUIRE_OK(methods);
  const Model& counter = (*methods)[0];
  const Model& reader = (*methods)[1];
  CHECK_TRUE(Count(counter) == Floats({2, 3, 4, 5}));
  const auto read = reader.Run({});
  REQUIRE_OK(read);
  CHECK_TRUE(ToFloats((*read)[0]) == Floats({2, 3, 4, 5}));
  CHECK_TRUE(Count(counter) == Floats({3, 4, 5, 6}));
}

TEST(AnIndexOutOfRangeIsAnErrorOfTheCall) {
  const auto model = Model::Load(IndexerSpec(), {.num_runners = 1});
  REQUIRE_OK(model);
  Floats good = {3, 0, 0, 0};
  Floats bad = {7, 0, 0, 0};
  REQUIRE_OK(Run(*model, good, {4}));
  for (int i = 0; i < 2; ++i) {
    CHECK_ERROR(Run(*model, bad, {4}), ErrorCode::kExecutionFailed,
                "indexer: index 7 is out of range for a dimension of size 4");
    REQUIRE_OK(Run(*model, good, {4}));
  }
}

TEST(TheSlimRuntimesOperatorsRefuseTensorsOnADevice) {
  const auto model = Model::Load(OnCpuSpec());
  REQUIRE_OK(model);
  Floats x = {1, 2, 3, 4};
  CHECK_ERROR(Run(*model, x, {4}), ErrorCode::kExecutionFailed,
              "on_cpu: the operator runs on the CPU, but one of its tensors is on cuda:0 (in "
              "aoti_torch_cpu_cumsum)");
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
