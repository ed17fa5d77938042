// Other weights for a loaded model, with fake programs and a fake C ABI.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/tensor_view.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"
#include "runtime/tests/fake_shim.h"

namespace aoti::testing {
namespace {

using Floats = std::vector<float>;

std::string WriteWeights(const std::string& name,
                         const std::vector<std::pair<std::string, Floats>>& tensors,
                         DType dtype = DType::kFloat32) {
  const char* directory = std::getenv("TEST_TMPDIR");
  SafetensorsWriter writer;
  for (const auto& [tensor, values] : tensors) {
    writer.Add(tensor, dtype, {static_cast<std::int64_t>(values.size())}, values.data());
  }
  std::string path =
      std::filesystem::path(directory == nullptr ? "/tmp" : directory) / (name + ".safetensors");
  CHECK_TRUE(writer.Write(path));
  return path;
}

std::string Bias(const std::string& name, const Floats& bias) {
  return WriteWeights(name, {{"bias", bias}});
}

// The result for an input of zeros: the bias.
Floats BiasOf(const Model& model) {
  const Floats x = {0, 0};
  const TensorRef<const float, 2> input = {x.data(), {1, 2}};
  const std::vector<TensorView> views = {input.view()};
  const auto out = model.Run(views);
  if (!out.ok()) return {};
  const auto* data = static_cast<const float*>((*out)[0].data());
  return {data, data + 2};
}

// How many mappings of the file this process has.
int Mappings(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  const std::string name = std::filesystem::canonical(path);
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with(name) ? 1 : 0;
  return count;
}

void CheckError(const std::optional<Error>& error, ErrorCode code, const std::string& message) {
  CHECK_TRUE(error.has_value());
  if (!error) return;
  CHECK_EQ(to_string(error->code()), to_string(code));
  CHECK_EQ(error->message(), message);
}

TEST(LaterCallsHaveTheNewWeights) {
  const int tensors = LiveTensors();
  {
    const std::string old_path = Bias("old", {1, 2});
    const std::string new_path = Bias("new", {3, 4});
    const auto model = Model::Load(AdderSpec(), {.weights_path = old_path});
    REQUIRE_OK(model);
    CHECK_TRUE(BiasOf(*model) == Floats({1, 2}));
    CHECK_EQ(Mappings(old_path), 1);
    CHECK_TRUE(!model->SwapWeights(new_path));
    CHECK_TRUE(BiasOf(*model) == Floats({3, 4}));
    CHECK_EQ(Mappings(old_path), 0);
    CHECK_EQ(Mappings(new_path), 1);
    CHECK_EQ(g_instances.load(), 1);
    // The same file again shares the mapping.
    CHECK_TRUE(!model->SwapWeights(new_path));
    CHECK_TRUE(BiasOf(*model) == Floats({3, 4}));
    CHECK_EQ(Mappings(new_path), 1);
    // A copy does not depend on the file.
    CHECK_TRUE(!model->SwapWeights(old_path, true));
    CHECK_EQ(::truncate(old_path.c_str(), 0), 0);
    CHECK_TRUE(BiasOf(*model) == Floats({1, 2}));
  }
  CHECK_EQ(LiveTensors(), tensors);
  CHECK_EQ(g_instances.load(), 0);
}

TEST(ModelsOfOneProgramHaveWeightsOfTheirOwn) {
  const std::string path = Bias("shared", {1, 2});
  const auto a = Model::Load(AdderSpec(), {.weights_path = path});
  const auto b = Model::Load(AdderSpec(), {.weights_path = path});
  REQUIRE_OK(a);
  REQUIRE_OK(b);
  CHECK_EQ(Mappings(path), 1);
  CHECK_TRUE(!b->SwapWeights(Bias("other", {3, 4})));
  CHECK_TRUE(BiasOf(*a) == Floats({1, 2}));
  CHECK_TRUE(BiasOf(*b) == Floats({3, 4}));
}

TEST(ARunningCallKeepsTheOldWeights) {
  const std::string old_path = Bias("running_old", {1, 2});
  const auto model = Model::Load(AdderSpec(), {.weights_path = old_path, .num_runners = 2});
  REQUIRE_OK(model);
  g_most_running = 0;
  g_hold = true;
  Floats seen;
  std::thread call([&] { seen = BiasOf(*model); });
  while (g_most_running == 0) std::this_thread::yield();
  CHECK_TRUE(!model->SwapWeights(Bias("running_new", {3, 4})));
  CHECK_TRUE(BiasOf(*model) == Floats({3, 4}));
  CHECK_EQ(Mappings(old_path), 1);
  g_hold = false;
  call.join();
  CHECK_TRUE(seen == Floats({1, 2}));
  CHECK_EQ(Mappings(old_path), 0);
  CHECK_EQ(g_instances.load(), 1);
}

TEST(SwapsWhileCallsRun) {
  const std::string paths[] = {Bias("even", {0, 0}), Bias("odd", {1, 1})};
  const auto model = Model::Load(AdderSpec(), {.weights_path = paths[0], .num_runners = 2});
  REQUIRE_OK(model);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> ran = 0;
  g_most_running = 0;
  g_microseconds = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const Floats bias = BiasOf(*model);
        if (bias != Floats({0, 0}) && bias != Floats({1, 1})) ++wrong;
        ++ran;
      }
    });
  }
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) {
      if (model->SwapWeights(paths[i % 2])) ++wrong;
    }
  });
  for (int i = 0; i < 200; ++i) {
    if (model->SwapWeights(paths[i % 2])) ++wrong;
  }
  other.join();
  while (ran < 100) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  g_microseconds = 0;
  CHECK_EQ(wrong.load(), 0);
  // The bound holds over calls with old and new weights.
  CHECK_TRUE(g_most_running.load() <= 2);
  CHECK_TRUE(g_instances.load() <= 2);
  CHECK_TRUE(!model->SwapWeights(paths[1]));
  CHECK_EQ(Mappings(paths[0]), 0);
}

TEST(StateIsKept) {
  const auto weights = [](const std::string& name, float count) {
    return WriteWeights(name, {{"count", {count}}, {"total", {10 * count}}});
  };
  const auto model = Model::Load(CounterSpec(), {.weights_path = weights("state_old", 5)});
  REQUIRE_OK(model);
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const std::vector<TensorView> views = {input.view()};
  for (const float expected : {6.0F, 7.0F, 8.0F}) {
    const auto out = model->Run(views);
    REQUIRE_OK(out);
    CHECK_EQ(*static_cast<const float*>((*out)[0].data()), expected);
    CHECK_EQ(*static_cast<const float*>((*out)[1].data()), 10 * expected);
    CHECK_TRUE(!model->SwapWeights(weights("state_new", 100)));
  }
  CheckError(model->SwapWeights(WriteWeights("stateless", {{"count", {1}}})),
             ErrorCode::kWeightsMismatch,
             "counter: weights " + WriteWeights("stateless", {{"count", {1}}}) +
                 " are not those of //tests:counter; 1 tensors differ:\n"
                 "  missing: \"total\", float32[1]");
}

TEST(AfterAnErrorTheOldWeightsStay) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Bias("kept", {1, 2})});
  REQUIRE_OK(model);
  CheckError(model->SwapWeights("/does/not/exist"), ErrorCode::kWeightsNotFound,
             "adder: weights /does/not/exist: No such file or directory");
  const std::string integers = WriteWeights("integers", {{"bias", {1, 2}}}, DType::kInt32);
  CheckError(model->SwapWeights(integers), ErrorCode::kWeightsMismatch,
             "adder: weights " + integers +
                 " are not those of //tests:adder; 1 tensors differ:\n"
                 "  wrong: \"bias\" is int32[2], must be float32[2]");
  g_no_memory = true;
  CheckError(model->SwapWeights(Bias("unused", {3, 4})), ErrorCode::kOutOfMemory,
             "adder: out of memory");
  g_no_memory = false;
  CHECK_TRUE(BiasOf(*model) == Floats({1, 2}));
  CHECK_EQ(g_instances.load(), 1);
}

TEST(SomeModelsHaveNoWeightsToSwap) {
  const auto echo = Model::Load(EchoSpec());
  REQUIRE_OK(echo);
  CheckError(echo->SwapWeights("any"), ErrorCode::kInvalidArgument,
             "echo: has no weights; there is nothing to swap");
}

Result<std::vector<Model>> LoadAdders(const std::string& path) {
  static const ProgramSpec* const specs[] = {&AdderSpec(), &AdderSpec()};
  return Model::LoadMethods(specs, {.weights_path = path, .num_runners = 2});
}

TEST(MethodsChangeAtOnce) {
  const std::string old_path = Bias("methods_old", {1, 2});
  auto methods = LoadAdders(old_path);
  REQUIRE_OK(methods);
  CHECK_TRUE(!(*methods)[1].SwapWeights(Bias("methods_new", {3, 4})));
  CHECK_TRUE(BiasOf((*methods)[0]) == Floats({3, 4}));
  CHECK_TRUE(BiasOf((*methods)[1]) == Floats({3, 4}));
  CHECK_EQ(Mappings(old_path), 0);
  CHECK_EQ(Mappings(Bias("methods_new", {3, 4})), 1);
  // After an error, all have what they had.
  CheckError((*methods)[0].SwapWeights("/does/not/exist"), ErrorCode::kWeightsNotFound,
             "adder: weights /does/not/exist: No such file or directory");
  CHECK_TRUE(BiasOf((*methods)[0]) == BiasOf((*methods)[1]));
  // A method may be gone.
  {
    const Model gone = std::move((*methods)[0]);
  }
  CHECK_TRUE(!(*methods)[1].SwapWeights(old_path));
  CHECK_TRUE(BiasOf((*methods)[1]) == Floats({1, 2}));
}

TEST(MethodsAreSwappedByManyThreads) {
  const std::string paths[] = {Bias("methods_even", {0, 0}), Bias("methods_odd", {1, 1})};
  const auto methods = LoadAdders(paths[0]);
  REQUIRE_OK(methods);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        if ((*methods)[t % 2].SwapWeights(paths[(i + t) % 2])) ++wrong;
        const Floats bias = BiasOf((*methods)[i % 2]);
        if (bias != Floats({0, 0}) && bias != Floats({1, 1})) ++wrong;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // ends a child that would wait for ever
      if ((*methods)[0].SwapWeights(paths[1])) _exit(1);
      _exit(BiasOf((*methods)[1]) == Floats({1, 1}) ? 0 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) ++wrong;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_TRUE(BiasOf((*methods)[0]) == BiasOf((*methods)[1]));
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
