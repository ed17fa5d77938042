// Models from loading to running, over fake programs and a fake C ABI.

#include "aoti/model.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aoti/tensor_view.h"
#include "runtime/core/cpu.h"
#include "runtime/core/program.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"
#include "runtime/tests/fake_shim.h"

namespace aoti::testing {
namespace {

using Floats = std::vector<float>;

std::string TempPath(const std::string& name) {
  const char* directory = std::getenv("TEST_TMPDIR");
  return std::filesystem::path(directory == nullptr ? "/tmp" : directory) / name;
}

// A file with these tensors of float32.
std::string WriteWeights(const std::string& name,
                         const std::vector<std::pair<std::string, Floats>>& tensors) {
  SafetensorsWriter writer;
  for (const auto& [tensor, values] : tensors) {
    writer.Add(tensor, DType::kFloat32, {static_cast<std::int64_t>(values.size())}, values.data());
  }
  std::string path = TempPath(name);
  CHECK_TRUE(writer.Write(path));
  return path;
}

std::string AdderWeights() { return WriteWeights("adder.safetensors", {{"bias", {10, 20}}}); }
std::string CounterWeights() {
  return WriteWeights("counter.safetensors", {{"count", {5}}, {"total", {50}}});
}

Result<std::vector<Tensor>> RunAdder(const Model& model, const Floats& x, const Sizes<2>& sizes,
                                     const Sizes<2>& strides) {
  const TensorRef<const float, 2> input = {x.data(), sizes, strides};
  const std::vector<TensorView> views = {input.view()};
  return model.Run(views);
}

Floats Values(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.numel()};
}

TEST(RunsAModel) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  const Floats x = {1, 2, 3, 4};
  const auto out = RunAdder(*model, x, {2, 2}, {2, 1});
  REQUIRE_OK(out);
  CHECK_TRUE(Values((*out)[0]) == Floats({11, 22, 13, 24}));
  // A view of the input: copied, and made contiguous.
  CHECK_TRUE(Values((*out)[1]) == Floats({1, 3, 2, 4}));
  CHECK_TRUE((*out)[1].data() != x.data());
}

TEST(CopiesInputsOfOtherLayouts) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  const Floats x = {1, 3, 2, 4};
  const auto out = RunAdder(*model, x, {2, 2}, {1, 2});
  REQUIRE_OK(out);
  CHECK_TRUE(Values((*out)[0]) == Floats({11, 22, 13, 24}));
  const auto first = Values((*out)[1]);
  // The copy is made in memory that the next call uses again; outputs must not change with it.
  const Floats other = {7, 7, 7, 7};
  REQUIRE_OK(RunAdder(*model, other, {2, 2}, {1, 2}));
  CHECK_TRUE(Values((*out)[1]) == first);
}

TEST(OutputsOutliveTheModel) {
  std::vector<Tensor> out;
  {
    const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
    REQUIRE_OK(model);
    auto result = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
    REQUIRE_OK(result);
    out = *std::move(result);
  }
  CHECK_TRUE(Values(out[0]) == Floats({11, 22}));
  CHECK_TRUE(Values(out[1]) == Floats({1, 2}));
}

TEST(ChecksCalls) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  CHECK_ERROR(RunAdder(*model, {1, 2, 3}, {1, 3}, {3, 1}), ErrorCode::kWrongSize,
              "adder: input \"x\": dim 1 is 3, must be 2");
}

TEST(KeepsState) {
  const auto load = [] { return Model::Load(CounterSpec(), {.weights_path = CounterWeights()}); };
  const auto a = load();
  const auto b = load();
  REQUIRE_OK(a);
  REQUIRE_OK(b);
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const std::vector<TensorView> views = {input.view()};
  std::vector<Floats> seen;
  std::vector<Tensor> first;
  for (const Model* model : {&*a, &*a, &*b, &*a}) {
    auto out = model->Run(views);
    REQUIRE_OK(out);
    seen.push_back({Values((*out)[0])[0], Values((*out)[1])[0]});
    if (first.empty()) first = *std::move(out);
  }
  CHECK_TRUE(seen == std::vector<Floats>({{6, 60}, {7, 70}, {6, 60}, {8, 80}}));
  CHECK_EQ(cache, 400.0F);
  CHECK_EQ(Values(first[0])[0], 6.0F);  // outputs are no views of the state
}

TEST(LeaksNothing) {
  const int before = LiveTensors();
  {
    const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
    REQUIRE_OK(model);
    REQUIRE_OK(RunAdder(*model, {1, 2}, {1, 2}, {2, 1}));
    g_throw = "oops";
    CHECK_TRUE(!RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok());
    g_throw = "";
  }
  CHECK_EQ(LiveTensors(), before);
  CHECK_EQ(g_instances.load(), 0);
}

TEST(TurnsExceptionsIntoErrors) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  const auto run = [&](const char* what) {
    g_throw = what;
    auto result = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
    g_throw = "";
    return result;
  };
  CHECK_ERROR(run("index out of range\nException raised from f at g.cpp:1"),
              ErrorCode::kExecutionFailed, "adder: index out of range");
  SetLastError("mat1 and mat2 differ\nException raised from f at g.cpp:1");
  CHECK_ERROR(run("aoti_torch_cpu_mm_out(a, b) API call failed at /build/w.cpp, line 7"),
              ErrorCode::kExecutionFailed,
              "adder: mat1 and mat2 differ (in aoti_torch_cpu_mm_out)");
  CHECK_ERROR(run("bad_alloc"), ErrorCode::kOutOfMemory, "adder: out of memory");
  CHECK_ERROR(run("42"), ErrorCode::kExecutionFailed, "adder: unknown exception");
  REQUIRE_OK(run(""));
}

TEST(RunsAtTheSameTimeUpToALimit) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights(), .num_runners = 2});
  REQUIRE_OK(model);
  CHECK_EQ(g_instances.load(), 1);  // the others are made when needed
  g_most_running = 0;
  g_microseconds = 2000;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto number = static_cast<float>(t);
      for (int i = 0; i < 20; ++i) {
        // Every other call needs a copy of its input.
        const Floats x = {number, 1, 2, number};
        const bool transposed = i % 2 == 1;
        const auto out =
            transposed ? RunAdder(*model, x, {2, 2}, {1, 2}) : RunAdder(*model, x, {2, 2}, {2, 1});
        const Floats expected = transposed ? Floats{number + 10, 22, 11, number + 20}
                                           : Floats{number + 10, 21, 12, number + 20};
        if (!out.ok() || Values((*out)[0]) != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_microseconds = 0;
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(g_most_running.load(), 2);
  CHECK_EQ(g_instances.load(), 2);
}

TEST(StateIsSerialised) {
  const auto model =
      Model::Load(CounterSpec(), {.weights_path = CounterWeights(), .num_runners = 8});
  REQUIRE_OK(model);
  g_microseconds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      float cache = 0;
      const TensorRef<float, 1> input = {&cache, {1}};
      const std::vector<TensorView> views = {input.view()};
      for (int i = 0; i < 25; ++i) (void)model->Run(views).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_microseconds = 0;
  CHECK_EQ(g_instances.load(), 1);
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const std::vector<TensorView> views = {input.view()};
  const auto out = model->Run(views);
  REQUIRE_OK(out);
  CHECK_EQ(Values((*out)[0])[0], 5.0F + 101.0F);
}

TEST(RefusesOptionsThatMakeNoSense) {
  CHECK_ERROR(Model::Load(AdderSpec(), {.weights_path = AdderWeights(), .num_runners = -1}),
              ErrorCode::kInvalidArgument, "adder: num_runners is -1, must be 0 or more");
}

TEST(RefusesAnotherTorch) {
  SetVersion(2, 14, 1);
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  SetVersion(2, 13, 0);
  CHECK_ERROR(model, ErrorCode::kVersionMismatch,
              "adder: compiled for torch 2.13.0+cpu, but this program runs with torch 2.14.1; link "
              "it with the torch of the toolchain that built the model");
}

TEST(RefusesOtherWeights) {
  CHECK_ERROR(Model::Load(AdderSpec(), {.weights_path = "/does/not/exist"}),
              ErrorCode::kWeightsNotFound,
              "adder: weights /does/not/exist: No such file or directory");
  const std::string path =
      WriteWeights("wrong.safetensors", {{"count", {1, 2}}, {"b", {1}}, {"a", {1, 2, 3}}});
  CHECK_ERROR(Model::Load(CounterSpec(), {.weights_path = path}), ErrorCode::kWeightsMismatch,
              "counter: weights " + path +
                  " are not those of //tests:counter; 4 tensors differ:\n"
                  "  wrong: \"count\" is float32[2], must be float32[1]\n"
                  "  missing: \"total\", float32[1]\n"
                  "  extra: \"a\", float32[3]\n"
                  "  extra: \"b\", float32[1]");
}

TEST(RefusesTablesThatDoNotFitTheProgram) {
  internal::ProgramSpec spec = AdderSpec();
  spec.outputs = spec.outputs.subspan(1);
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kInternal,
              "adder: the program has 2 outputs, its tables say 1");
  spec = AdderSpec();
  internal::ProgramVariant variant = spec.variants[0];
  internal::ConstantSpec constant = variant.constants[0];
  constant.offset = 1;
  variant.constants = {&constant, 1};
  spec.variants = {&variant, 1};
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kInternal,
              "adder: the program's view of weight \"bias\" ends behind it");
}

#if defined(__x86_64__)
// As a model that was built with isas = [...]; each variant says which one it is by its constants.
TEST(TakesTheBestVariantOfTheCpu) {
  const internal::ProgramVariant& any = AdderSpec().variants[0];
  const internal::ProgramVariant variants[] = {{"x86-64-v4", any.constants, any.program},
                                               {"x86-64-v3", any.constants, any.program}};
  internal::ProgramSpec spec = AdderSpec();
  spec.variants = variants;
  internal::PretendCpu("x86-64-v3");
  CHECK_TRUE(*internal::ChooseVariant(spec) == &variants[1]);
  internal::PretendCpu("x86-64");
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kUnsupportedCpu,
              "adder: this CPU can't run what the model was compiled for: x86-64-v4, of which it "
              "lacks x86-64-v4; x86-64-v3, of which it lacks x86-64-v3. Use another machine, or "
              "build //tests:adder for less too (isas, or isa without a value for any CPU)");
  internal::PretendCpu("");
}
#endif

TEST(NoCpuRunsWhatNobodyKnows) {
  internal::ProgramVariant variant = AdderSpec().variants[0];
  variant.isa = "vax";
  internal::ProgramSpec spec = AdderSpec();
  spec.variants = {&variant, 1};
  const auto chosen = internal::ChooseVariant(spec);
  CHECK_TRUE(!chosen.ok());
  CHECK_TRUE(chosen.error().code() == ErrorCode::kUnsupportedCpu);
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
