// Loading and running models, with fake programs and a fake C ABI.

#include "aoti/model.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "aoti/tensor_view.h"
#include "runtime/core/cpu.h"
#include "runtime/core/digest.h"
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

// A file with these float32 tensors.
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
  // A view of the input is copied and made contiguous.
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
  // The copy is made in memory that the next call reuses; outputs must not change with it.
  const Floats other = {7, 7, 7, 7};
  REQUIRE_OK(RunAdder(*model, other, {2, 2}, {1, 2}));
  CHECK_TRUE(Values((*out)[1]) == first);
}

TEST(OutputsShareNoMemory) {
  const int before = LiveTensors();
  {
    const auto model = Model::Load(TwinsSpec());
    REQUIRE_OK(model);
    for (int call = 0; call < 5; ++call) {
      auto out = RunAdder(*model, {1, 2, 3, 4, 5, 6}, {3, 2}, {2, 1});
      REQUIRE_OK(out);
      auto* y = static_cast<float*>((*out)[0].data());
      std::fill(y, y + 6, 9.0F);
      (*out)[0] = Tensor();
      CHECK_TRUE(Values((*out)[1]) == Floats({2, 3, 4, 5, 6, 7}));
      CHECK_TRUE(Values((*out)[2]) == Floats({4, 5, 6, 7}));
    }
  }
  CHECK_EQ(LiveTensors(), before);
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

TEST(MovedFromModelsFail) {
  auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  const Model moved = *std::move(model);
  REQUIRE_OK(RunAdder(moved, {1, 2}, {1, 2}, {2, 1}));
  const Model& empty = *model;  // NOLINT(bugprone-use-after-move)
  CHECK_ERROR(RunAdder(empty, {1, 2}, {1, 2}, {2, 1}), ErrorCode::kInvalidArgument,
              "this Model was moved from; use the one that it was moved to");
  CHECK_TRUE(empty.ManualSeed(1).has_value());
  CHECK_EQ(std::string(empty.name()) + empty.isa(), "");
  CHECK_TRUE(empty.inputs().empty());
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
  CHECK_EQ(Values(first[0])[0], 6.0F);  // outputs are not views of the state
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
  CHECK_EQ(g_instances.load(), 1);  // the others are made when they are needed
  g_most_running = 0;
  g_microseconds = 2000;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto number = static_cast<float>(t);
      for (int i = 0; i < 20; ++i) {
        // Every second call needs a copy of its input.
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

TEST(RunnersThatFailToAllocateFreeTheirPlace) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights(), .num_runners = 2});
  REQUIRE_OK(model);
  const auto run_beside = [&](const auto& other) {
    g_hold = true;
    g_most_running = 0;
    std::thread thread([&] { (void)RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok(); });
    while (g_most_running == 0) std::this_thread::yield();
    other();
    g_hold = false;
    thread.join();
  };
  run_beside([&] {
    g_no_memory = true;
    CHECK_ERROR(RunAdder(*model, {1, 2}, {1, 2}, {2, 1}), ErrorCode::kOutOfMemory,
                "adder: out of memory");
    g_no_memory = false;
  });
  // The second runner is made now: no call waits for the runner that could not be made.
  run_beside([&] { REQUIRE_OK(RunAdder(*model, {1, 2}, {1, 2}, {2, 1})); });
  CHECK_EQ(g_most_running.load(), 2);
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

TEST(MethodsShareState) {
  const ProgramSpec* const specs[] = {&CounterSpec(), &ReaderSpec(), &CounterSpec()};
  const auto methods = Model::LoadMethods(specs, {.weights_path = CounterWeights()});
  REQUIRE_OK(methods);
  const auto& [counter, reader, again] = std::tie((*methods)[0], (*methods)[1], (*methods)[2]);
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const std::vector<TensorView> views = {input.view()};
  for (const float expected : {60.0F, 70.0F, 80.0F}) {
    REQUIRE_OK((expected == 70 ? again : counter).Run(views));
    const auto total = reader.Run({});
    REQUIRE_OK(total);
    CHECK_EQ(Values((*total)[0])[0], expected);
  }
  // Another load has its own state.
  const auto other = Model::LoadMethods(specs, {.weights_path = CounterWeights()});
  REQUIRE_OK(other);
  CHECK_EQ(Values((*(*other)[1].Run({}))[0])[0], 50.0F);
}

TEST(MethodsThatShareStateRunOneAfterTheOther) {
  const ProgramSpec* const specs[] = {&CounterSpec(), &CounterSpec()};
  const auto methods = Model::LoadMethods(specs, {.weights_path = CounterWeights()});
  REQUIRE_OK(methods);
  g_microseconds = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      float cache = 0;
      const TensorRef<float, 1> input = {&cache, {1}};
      const std::vector<TensorView> views = {input.view()};
      for (int i = 0; i < 25; ++i) (void)(*methods)[t % 2].Run(views).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_microseconds = 0;
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const auto out = (*methods)[1].Run(std::vector<TensorView>{input.view()});
  REQUIRE_OK(out);
  CHECK_EQ(Values((*out)[0])[0], 5.0F + 101.0F);
}

TEST(MethodsHaveOneTableOfWeights) {
  const ProgramSpec* const specs[] = {&CounterSpec(), &AdderSpec()};
  CHECK_ERROR(Model::LoadMethods(specs, {.weights_path = CounterWeights()}),
              ErrorCode::kInvalidArgument,
              "adder: not a method of the same model as counter: they have other weights");
  CHECK_ERROR(Model::LoadMethods({}), ErrorCode::kInvalidArgument, "LoadMethods: no programs");
}

TEST(AForkedChildCanUseAllRunners) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights(), .num_runners = 1});
  REQUIRE_OK(model);
  g_most_running = 0;
  g_hold = true;
  std::thread busy([&] { (void)RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok(); });
  std::thread waiting([&] { (void)RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok(); });
  while (g_most_running == 0) usleep(100);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that would wait for ever
    g_hold = false;
    for (int i = 0; i < 3; ++i) {
      const auto out = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
      if (!out.ok() || Values((*out)[0]) != Floats{11, 22}) _exit(1);
    }
    // Loading takes process-wide locks.
    if (!Model::Load(AdderSpec(), {.weights_path = AdderWeights()}).ok()) _exit(2);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  g_hold = false;
  busy.join();
  waiting.join();
  CHECK_EQ(status, 0);
}

TEST(AChildForkedWhileModelsAreLoadedAndRun) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights(), .num_runners = 2});
  REQUIRE_OK(model);
  const std::string weights = AdderWeights();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        (void)RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok();
        (void)Model::Load(AdderSpec(), {.weights_path = weights}).ok();
      }
    });
  }
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      const bool ran = RunAdder(*model, {1, 2}, {1, 2}, {2, 1}).ok();
      const bool loaded = Model::Load(AdderSpec(), {.weights_path = weights}).ok();
      _exit(ran && loaded ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) ++failed;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failed, 0);
}

TEST(RefusesOptionsOutOfRange) {
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

// A file with the adder's plain bias, its packed bias, or both; the packed one is what the build
// would have made from `packed_from`.
struct PackedFile {
  Floats plain = {};
  Floats packed = {10, 20};
  Floats packed_from = {10, 20};
  std::string packed_as = "bias#gemm_f32";
  std::size_t layout_bytes = 64;
  DType dtype = DType::kUInt8;
  std::string adapter = {};

  Result<Model> Load() const {
    const auto bytes = [](const Floats& floats) { return std::as_bytes(std::span(floats)); };
    std::vector<std::byte> data(layout_bytes + 64);
    const auto put = [&](std::size_t at, const void* from, std::size_t count) {
      std::memcpy(data.data() + at, from, count);
    };
    put(0, packed_from.data(), packed_from.size() * sizeof(float));
    const std::uint64_t about[] = {
        internal::Digest(std::as_bytes(std::span(packed_as))), internal::Digest(bytes(packed_from)),
        internal::Digest(std::span<const std::byte>(data).first(layout_bytes))};
    put(layout_bytes, "aotipack", 8);
    put(layout_bytes + 8, about, sizeof(about));
    put(0, packed.data(), packed.size() * sizeof(float));

    SafetensorsWriter writer;
    const std::string path = TempPath("packed.safetensors");
    if (!plain.empty()) writer.Add("bias", DType::kFloat32, {2}, plain.data());
    const auto elements = static_cast<std::int64_t>(data.size() / SizeOf(dtype));
    writer.Add("bias#gemm_f32", dtype, {elements}, data.data());
    CHECK_TRUE(writer.Write(path));

    static constexpr PackedSpec kPacked[] = {{0, "gemm_f32", "bias#gemm_f32", 64, true}};
    static ProgramSpec spec = AdderSpec();
    spec.packed = kPacked;
    return Model::Load(spec, {.weights_path = path, .adapter_path = adapter});
  }

  std::string Message() const {
    const auto model = Load();
    if (model.ok()) return "ok";
    CHECK_EQ(to_string(model.error().code()), "WeightsMismatch");
    const std::string& message = model.error().message();
    const std::string prefix = "adder: weights " + TempPath("packed.safetensors");
    CHECK_EQ(message.substr(0, prefix.size()), prefix);
    return message.substr(prefix.size());
  }
};

TEST(GivesConstantsTheirPackedCopies) {
  // The file has them at one address or eight bytes further: at most one of the two is aligned.
  for (const Floats& plain : {Floats(), Floats({10, 20})}) {
    const auto model = PackedFile{.plain = plain}.Load();
    REQUIRE_OK(model);
    CHECK_EQ(LastPacked().size(), 64U);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(LastPacked().data()) % 64, 0U);
    const auto out = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
    REQUIRE_OK(out);
    CHECK_TRUE(Values((*out)[0]) == Floats({11, 22}));
  }
}

TEST(AdaptersReplacePackedTensors) {
  const std::string adapter = WriteWeights("adapter.safetensors", {{"bias", {30, 40}}});
  for (const Floats& plain : {Floats(), Floats({10, 20})}) {
    ForgetPacked();
    const auto model = PackedFile{.plain = plain, .adapter = adapter}.Load();
    REQUIRE_OK(model);
    CHECK_TRUE(LastPacked().empty());
    const auto out = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
    REQUIRE_OK(out);
    CHECK_TRUE(Values((*out)[0]) == Floats({31, 42}));
  }
}

TEST(RefusesPackedTensorsOfAnotherSize) {
  const std::string wrong =
      " are not those of //tests:adder; 1 tensors differ:\n  wrong: \"bias#gemm_f32\" is ";
  CHECK_EQ((PackedFile{.layout_bytes = 0}.Message()), wrong + "uint8[64], must be uint8[128]");
  CHECK_EQ((PackedFile{.layout_bytes = 128}.Message()), wrong + "uint8[192], must be uint8[128]");
  CHECK_EQ((PackedFile{.dtype = DType::kFloat32}.Message()),
           wrong + "float32[32], must be uint8[128]");
  CHECK_EQ((PackedFile{.plain = {10, 20}, .layout_bytes = 0}.Message()),
           wrong + "uint8[64], must be uint8[128]");
}

TEST(RefusesPackedTensorsOfAnotherName) {
  CHECK_EQ((PackedFile{.packed_as = "scale#gemm_f32"}.Message()),
           ": \"bias#gemm_f32\" is not what the build packed under this name; give plain tensors, "
           "without packed ones, or a file as the build wrote it");
}

TEST(RefusesPackedTensorsThatDisagreeWithPlainOnes) {
  CHECK_EQ((PackedFile{.plain = {10, 20}}.Message()), "ok");
  const std::string disagree =
      ": \"bias\" and its packed copy \"bias#gemm_f32\" disagree: one was changed without the "
      "other; "
      "leave the packed one out, or have the build pack the changed weights";
  CHECK_EQ((PackedFile{.plain = {10, 21}}.Message()), disagree);
  CHECK_EQ((PackedFile{.plain = {10, 20}, .packed = {10, 21}}.Message()), disagree);
}

TEST(DigestDependsOnBytesAndTheirPositions) {
  std::vector<std::byte> bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::span<const std::byte> all = bytes;
  CHECK_EQ(internal::Digest(all),
           0x988b713ef8bb8c1dU);  // the driver computes the same number: test_packed_format.py
  CHECK_EQ(internal::Digest(all.first(0)), 0U);
  const std::uint64_t before = internal::Digest(all);
  std::swap(bytes[3], bytes[11]);
  CHECK_TRUE(internal::Digest(all) != before);
  bytes[99] = {};
  CHECK_TRUE(internal::Digest(all) != internal::Digest(all.first(99)));
}

TEST(ListsTheFirstOfVeryManyDifferences) {
  SafetensorsWriter writer;
  for (int i = 0; i < 1000; ++i) {
    writer.Add("t" + std::to_string(1000 + i), DType::kFloat32, {0}, nullptr);
  }
  const std::string path = TempPath("many.safetensors");
  CHECK_TRUE(writer.Write(path));
  const auto model = Model::Load(AdderSpec(), {.weights_path = path});
  CHECK_TRUE(!model.ok());
  const std::string& message = model.error().message();
  CHECK_TRUE(message.find("; 1001 tensors differ:\n  missing: \"bias\"") != std::string::npos);
  CHECK_TRUE(message.ends_with("\n  extra: \"t1048\", float32[0]\n  ... and 951 more"));

  for (int i = 1000; i < 1003; ++i) {
    writer.Add("t" + std::to_string(1000 + i), DType::kFloat32, {0}, nullptr);
  }
  CHECK_TRUE(writer.Write(path));
  CHECK_ERROR(Model::Load(AdderSpec(), {.weights_path = path}), ErrorCode::kWeightsMismatch,
              "adder: weights " + path +
                  ": holds more than 1002 tensors, far more than the model has; give a file of the "
                  "model's own");
}

TEST(RefusesPathsThatAreNotFiles) {
  const std::string fifo = TempPath("fifo");
  ::unlink(fifo.c_str());
  CHECK_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const bool copy : {false, true}) {
    const auto load = [copy](const std::string& path) {
      return Model::Load(AdderSpec(), {.weights_path = path, .copy_weights = copy});
    };
    CHECK_ERROR(load(fifo), ErrorCode::kIoError, "adder: weights " + fifo + ": not a regular file");
    CHECK_ERROR(load(TempPath("")), ErrorCode::kIoError,
                "adder: weights " + TempPath("") + ": not a regular file");
    CHECK_ERROR(
        load(AdderWeights() + std::string("\0.bak", 5)), ErrorCode::kInvalidArgument,
        "adder: weights " + AdderWeights() + ": the path has a NUL character here; remove it");
  }
}

TEST(CopiedWeightsDoNotDependOnTheFile) {
  const std::string path = WriteWeights("written.safetensors", {{"bias", {10, 20}}});
  const auto model = Model::Load(AdderSpec(), {.weights_path = path, .copy_weights = true});
  REQUIRE_OK(model);
  // In place: the same file first has other values, then no bytes at all.
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-8, std::ios::end)
      .write("12345678", 8);
  CHECK_EQ(::truncate(path.c_str(), 0), 0);
  const auto out = RunAdder(*model, {1, 2}, {1, 2}, {2, 1});
  REQUIRE_OK(out);
  CHECK_TRUE(Values((*out)[0]) == Floats({11, 22}));
}

TEST(SeedsOrReportsAnError) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = AdderWeights()});
  REQUIRE_OK(model);
  // Slim without random operators has no generator to seed.
  CHECK_TRUE(!model->ManualSeed(1));
  ProgramVariant variant = AdderSpec().variants[0];
  variant.program = [](const ProgramSpec&) -> Result<const ProgramVTable*> {
    static ProgramVTable table = **AdderSpec().variants[0].program(AdderSpec());
    table.shim.set_packed = nullptr;
    return &table;
  };
  ProgramSpec spec = AdderSpec();
  spec.variants = {&variant, 1};
  const auto on_libtorch = Model::Load(spec, {.weights_path = AdderWeights()});
  REQUIRE_OK(on_libtorch);
  const auto error = on_libtorch->ManualSeed(1);
  CHECK_TRUE(error.has_value());
  if (error) {
    CHECK_EQ(error->message(), "adder: runs on libtorch; seed it with torch::manual_seed()");
  }
}

TEST(RefusesTablesThatDoNotFitTheProgram) {
  ProgramSpec spec = AdderSpec();
  spec.outputs = spec.outputs.subspan(1);
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kInternal,
              "adder: the program has 2 outputs, its tables say 1");
  spec = AdderSpec();
  ProgramVariant variant = spec.variants[0];
  ConstantSpec constant = variant.constants[0];
  constant.offset = 1;
  variant.constants = {&constant, 1};
  spec.variants = {&variant, 1};
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kInternal,
              "adder: the program's view of weight \"bias\" reaches past its end");
}

#if defined(__x86_64__)
// Like a model that was built with isas = [...]; the constants identify each variant.
TEST(TakesTheBestVariantOfTheCpu) {
  const ProgramVariant& any = AdderSpec().variants[0];
  const ProgramVariant variants[] = {{"x86-64-v4", any.constants, any.program},
                                     {"x86-64-v3", any.constants, any.program}};
  ProgramSpec spec = AdderSpec();
  spec.variants = variants;
  internal::PretendCpu("x86-64-v3");
  CHECK_TRUE(*internal::ChooseVariant(spec, std::nullopt) == &variants[1]);
  internal::PretendCpu("x86-64");
  CHECK_ERROR(Model::Load(spec, {.weights_path = AdderWeights()}), ErrorCode::kUnsupportedCpu,
              "adder: this CPU has none of the instruction sets that the model was compiled for: "
              "x86-64-v4 (the CPU lacks x86-64-v4); x86-64-v3 (the CPU lacks x86-64-v3). Use "
              "another machine, or build //tests:adder for a lower instruction set too: add it to "
              "isas, or leave isa out for any CPU");
  internal::PretendCpu("");
}
#endif

// Like a model that was built with devices = ["cpu", "cuda"].
TEST(TakesTheVariantOfTheDevice) {
  const ProgramVariant& cpu = AdderSpec().variants[0];
  ProgramVariant cuda = cpu;
  cuda.device = DeviceType::kCuda;
  const ProgramVariant variants[] = {cuda, cpu};
  ProgramSpec spec = AdderSpec();
  spec.variants = variants;
  CHECK_TRUE(*internal::ChooseVariant(spec, std::nullopt) == &variants[1]);
  CHECK_TRUE(*internal::ChooseVariant(spec, DeviceType::kCpu) == &variants[1]);
  CHECK_TRUE(*internal::ChooseVariant(spec, DeviceType::kCuda) == &variants[0]);
  // Of one device, that is the default.
  spec.variants = {variants, 1};
  CHECK_TRUE(*internal::ChooseVariant(spec, std::nullopt) == &variants[0]);
}

TEST(RefusesADeviceThatTheModelLacks) {
  const ProgramSpec& spec = AdderSpec();
  CHECK_ERROR(Model::Load(spec, {.device = DeviceType::kCuda}), ErrorCode::kInvalidArgument,
              "adder: can't be loaded for the device cuda: the model was compiled for cpu. Load it "
              "for that, or build //tests:adder with devices = [\"cpu\", \"cuda\"]");
}

TEST(NoCpuRunsAnUnknownInstructionSet) {
  ProgramVariant variant = AdderSpec().variants[0];
  variant.isa = "vax";
  ProgramSpec spec = AdderSpec();
  spec.variants = {&variant, 1};
  const auto chosen = internal::ChooseVariant(spec, std::nullopt);
  CHECK_TRUE(!chosen.ok());
  CHECK_TRUE(chosen.error().code() == ErrorCode::kUnsupportedCpu);
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
