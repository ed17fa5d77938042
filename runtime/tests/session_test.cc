// Sessions, with fake programs and a fake C ABI.

#include "aoti/session.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/safetensors.h"
#include "runtime/core/session_state.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"
#include "runtime/tests/fake_shim.h"

namespace {

// What the process has allocated and not freed.
std::atomic<std::size_t> g_live_bytes = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  g_live_bytes += malloc_usable_size(memory);
  return memory;
}

void Free(void* memory) {
  g_live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace aoti::testing {
namespace {

using Floats = std::vector<float>;

std::string Weights(float count, const std::string& name = "counter") {
  const char* directory = std::getenv("TEST_TMPDIR");
  const float total = 10 * count;
  SafetensorsWriter writer;
  writer.Add("count", DType::kFloat32, {1}, &count);
  writer.Add("total", DType::kFloat32, {1}, &total);
  std::string path =
      std::filesystem::path(directory == nullptr ? "/tmp" : directory) / (name + ".safetensors");
  CHECK_TRUE(writer.Write(path));
  return path;
}

Result<Model> LoadCounter(int num_runners = 2) {
  return Model::Load(CounterSpec(), {.weights_path = Weights(5), .num_runners = num_runners});
}

// What a call of the counter returns: its count and its total.
Floats Count(const Model& model) {
  float cache = 0;
  const TensorRef<float, 1> input = {&cache, {1}};
  const std::vector<TensorView> views = {input.view()};
  const auto out = model.Run(views);
  if (!out.ok()) return {};
  return {*static_cast<const float*>((*out)[0].data()),
          *static_cast<const float*>((*out)[1].data())};
}

Floats Count(const Session& session) { return Count(session.model()); }

TEST(EachSessionHasAStateOfItsOwn) {
  const int tensors = LiveTensors();
  {
    const auto model = LoadCounter();
    REQUIRE_OK(model);
    const auto a = model->NewSession();
    const auto b = model->NewSession();
    REQUIRE_OK(a);
    REQUIRE_OK(b);
    CHECK_TRUE(Count(*a) == Floats({6, 60}));
    CHECK_TRUE(Count(*a) == Floats({7, 70}));
    CHECK_TRUE(Count(*b) == Floats({6, 60}));
    CHECK_TRUE(Count(*model) == Floats({6, 60}));
    CHECK_TRUE(Count(*a) == Floats({8, 80}));
    CHECK_TRUE(Count(*b) == Floats({7, 70}));
    CHECK_TRUE(Count(*model) == Floats({7, 70}));
    // They share the runners: calls one after the other need one.
    CHECK_EQ(g_instances.load(), 1);
  }
  CHECK_EQ(LiveTensors(), tensors);
  CHECK_EQ(g_instances.load(), 0);
}

TEST(ASessionOutlivesItsModel) {
  auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  {
    const Model gone = *std::move(model);
  }
  CHECK_TRUE(Count(*session) == Floats({6, 60}));
}

TEST(AForkBeginsWithTheValuesOfItsOrigin) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto a = model->NewSession();
  REQUIRE_OK(a);
  const auto unused = a->Fork();
  REQUIRE_OK(unused);
  CHECK_TRUE(Count(*a) == Floats({6, 60}));
  const auto b = a->Fork();
  const auto c = b->Fork();
  REQUIRE_OK(b);
  REQUIRE_OK(c);
  CHECK_TRUE(Count(*b) == Floats({7, 70}));
  CHECK_TRUE(Count(*b) == Floats({8, 80}));
  CHECK_TRUE(Count(*a) == Floats({7, 70}));
  CHECK_TRUE(Count(*c) == Floats({7, 70}));
  CHECK_TRUE(Count(*unused) == Floats({6, 60}));
}

TEST(AForkTakesNoMemoryUntilItRuns) {
  using internal::SessionState;
  const auto weights = internal::Weights::Load(CounterSpec(), Weights(5), false);
  REQUIRE_OK(weights);
  SessionState origin;
  CHECK_EQ(origin.id(), 0U);
  origin.Writable(CounterSpec(), *weights, nullptr);
  const std::uint64_t memory = origin.id();
  const auto fork = origin.Fork();
  auto other = fork->Fork();
  CHECK_EQ(fork->id(), memory);
  CHECK_EQ(other->id(), memory);
  // The first ones to run take copies; the last one has the memory alone.
  fork->Writable(CounterSpec(), *weights, nullptr);
  CHECK_TRUE(fork->id() != memory);
  origin.Writable(CounterSpec(), *weights, nullptr);
  CHECK_TRUE(origin.id() != memory);
  CHECK_TRUE(origin.id() != fork->id());
  other->Writable(CounterSpec(), *weights, nullptr);
  CHECK_EQ(other->id(), memory);
  // So has the last one that is left.
  const auto last = fork->Fork();
  const std::uint64_t shared = last->id();
  fork->Replace(nullptr);
  last->Writable(CounterSpec(), *weights, nullptr);
  CHECK_EQ(last->id(), shared);
}

TEST(ASessionTakesTheMemoryOfItsStateAlone) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  Count(*model);
  const auto origin = model->NewSession();
  REQUIRE_OK(origin);
  Count(*origin);
  constexpr std::size_t kSessions = 1000;
  // Without what a session remembers, which is 8 bytes in two buffers.
  constexpr std::size_t kMost = 1024;
  std::vector<Session> sessions;
  sessions.reserve(kSessions);
  const std::size_t before = g_live_bytes;
  for (std::size_t i = 0; i < kSessions; ++i) {
    auto fork = origin->Fork();
    REQUIRE_OK(fork);
    sessions.push_back(*std::move(fork));
  }
  const std::size_t idle = (g_live_bytes - before) / kSessions;
  for (const Session& session : sessions) Count(session);
  const std::size_t used = (g_live_bytes - before) / kSessions;
  CHECK_TRUE(used > idle);
  CHECK_TRUE(used <= kMost);
  sessions.clear();
  CHECK_TRUE(g_live_bytes < before + 10 * kMost);
}

TEST(ResetGivesTheValuesOfTheFile) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  CHECK_TRUE(!session->Reset());
  Count(*session);
  const auto fork = session->Fork();
  REQUIRE_OK(fork);
  CHECK_TRUE(!session->Reset());
  CHECK_TRUE(Count(*session) == Floats({6, 60}));
  CHECK_TRUE(Count(*fork) == Floats({7, 70}));
}

TEST(ASavedStateIsLoadedAgain) {
  const auto model = LoadCounter();
  const auto elsewhere = LoadCounter();
  REQUIRE_OK(model);
  REQUIRE_OK(elsewhere);
  const auto session = model->NewSession();
  const auto other = elsewhere->NewSession();
  REQUIRE_OK(session);
  REQUIRE_OK(other);
  const auto fresh = session->Save();
  REQUIRE_OK(fresh);
  Count(*session);
  Count(*session);
  const auto saved = session->Save();
  REQUIRE_OK(saved);
  const auto tensors = internal::ParseSafetensors(std::as_bytes(std::span(*saved)), "saved");
  REQUIRE_OK(tensors);
  CHECK_EQ(tensors->size(), 2U);
  CHECK_EQ((*tensors)[0].name, "count");
  CHECK_EQ((*tensors)[1].name, "total");
  // It may lie anywhere in memory.
  const std::string shifted = "?" + *saved;
  CHECK_TRUE(!other->Load(std::string_view(shifted).substr(1)));
  CHECK_TRUE(Count(*other) == Floats({8, 80}));
  CHECK_TRUE(Count(*session) == Floats({8, 80}));
  CHECK_TRUE(!session->Load(*fresh));
  CHECK_TRUE(Count(*session) == Floats({6, 60}));
}

void CheckError(const std::optional<Error>& error, ErrorCode code, const std::string& message) {
  CHECK_TRUE(error.has_value());
  if (!error) return;
  CHECK_EQ(to_string(error->code()), to_string(code));
  CHECK_EQ(error->message(), message);
}

TEST(AnotherModelsStateIsRefused) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  Count(*session);
  const std::int32_t number = 1;
  const std::vector<internal::StoredTensor> wrong = {
      {"count", DType::kInt32, {1}, std::as_bytes(std::span(&number, 1))},
      {"what", DType::kInt32, {1}, std::as_bytes(std::span(&number, 1))}};
  CheckError(session->Load(internal::ToSafetensors(wrong)), ErrorCode::kWeightsMismatch,
             "counter: the values of the saved state are not those of //tests:counter; 3 tensors "
             "differ:\n  wrong: \"count\" is int32[1], must be float32[1]\n  missing: \"total\", "
             "float32[1]\n  extra: \"what\", int32[1]");
  CheckError(session->Load("short"), ErrorCode::kWeightsMalformed,
             "counter: the values of the saved state: not a valid safetensors file: it has only 5 "
             "bytes");
  CHECK_TRUE(Count(*session) == Floats({7, 70}));
}

TEST(SomeModelsHaveNoState) {
  const auto echo = Model::Load(EchoSpec());
  REQUIRE_OK(echo);
  CHECK_ERROR(echo->NewSession(), ErrorCode::kInvalidArgument,
              "echo: has no state, because the model writes to none of its buffers; call the model "
              "itself");
}

TEST(MovedFrom) {
  auto model = LoadCounter();
  REQUIRE_OK(model);
  auto session = model->NewSession();
  REQUIRE_OK(session);
  const Session moved = *std::move(session);
  const std::string text = "this Session was moved from; use the one that it was moved to";
  CHECK_ERROR(session->Fork(), ErrorCode::kInvalidArgument, text);        // NOLINT
  CHECK_ERROR(session->Save(), ErrorCode::kInvalidArgument, text);        // NOLINT
  CHECK_ERROR(session->Bind(*model), ErrorCode::kInvalidArgument, text);  // NOLINT
  CheckError(session->Reset(), ErrorCode::kInvalidArgument, text);
  CheckError(session->Load(""), ErrorCode::kInvalidArgument, text);
  const Model other = *std::move(model);
  CHECK_ERROR(model->NewSession(), ErrorCode::kInvalidArgument,  // NOLINT
              "this Model was moved from; use the one that it was moved to");
  CHECK_ERROR(moved.Bind(*model), ErrorCode::kInvalidArgument,  // NOLINT
              "counter: the session can't be bound to a Model that was moved from, which is not a "
              "method of its model");
}

TEST(MethodsShareASession) {
  const ProgramSpec* const specs[] = {&CounterSpec(), &ReaderSpec()};
  const auto methods = Model::LoadMethods(specs, {.weights_path = Weights(5)});
  REQUIRE_OK(methods);
  // Whichever method makes the session.
  for (const Model& method : *methods) {
    const auto session = method.NewSession();
    REQUIRE_OK(session);
    const auto counter = session->Bind((*methods)[0]);
    const auto reader = session->Bind((*methods)[1]);
    REQUIRE_OK(counter);
    REQUIRE_OK(reader);
    const auto total = [](const Model& model) {
      const auto out = model.Run({});
      return out.ok() ? *static_cast<const float*>((*out)[0].data()) : 0;
    };
    CHECK_EQ(total(*reader), 50.0F);
    CHECK_TRUE(Count(*counter) == Floats({6, 60}));
    CHECK_TRUE(Count(*counter) == Floats({7, 70}));
    CHECK_EQ(total(*reader), 70.0F);
    CHECK_EQ(total((*methods)[1]), 50.0F);
  }
  const auto session = (*methods)[0].NewSession();
  const auto echo = Model::Load(EchoSpec());
  REQUIRE_OK(session);
  REQUIRE_OK(echo);
  CHECK_ERROR(session->Bind(*echo), ErrorCode::kInvalidArgument,
              "counter: the session can't be bound to echo, which is not a method of its model");
}

TEST(SwappedWeightsLeaveSessionsAsTheyAre) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto before = model->NewSession();
  REQUIRE_OK(before);
  Count(*before);
  CHECK_TRUE(!model->SwapWeights(Weights(100, "swapped")));
  const auto after = model->NewSession();
  REQUIRE_OK(after);
  CHECK_TRUE(Count(*before) == Floats({7, 70}));
  CHECK_TRUE(Count(*after) == Floats({101, 1010}));
  CHECK_TRUE(!before->Reset());
  CHECK_TRUE(Count(*before) == Floats({101, 1010}));
}

TEST(SessionsRunAtTheSameTime) {
  alarm(60);  // ends the test if one waits for the other
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto a = model->NewSession();
  const auto b = model->NewSession();
  REQUIRE_OK(a);
  REQUIRE_OK(b);
  g_most_running = 0;
  g_hold = true;
  std::thread busy([&] { Count(*a); });
  while (g_most_running == 0) std::this_thread::yield();
  CHECK_TRUE(Count(*b) == Floats({6, 60}));
  g_hold = false;
  busy.join();
  CHECK_TRUE(Count(*a) == Floats({7, 70}));
  CHECK_EQ(g_most_running.load(), 2);
  alarm(0);
}

TEST(CallsOfOneSessionRunOneAfterTheOther) {
  const auto model = LoadCounter(8);
  REQUIRE_OK(model);
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  g_most_running = 0;
  g_microseconds = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) Count(*session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_microseconds = 0;
  CHECK_EQ(g_most_running.load(), 1);
  CHECK_TRUE(Count(*session) == Floats({106, 1060}));
}

TEST(ThousandsOfSessionsOnManyThreads) {
  const auto model = LoadCounter(4);
  REQUIRE_OK(model);
  const auto prompt = model->NewSession();
  REQUIRE_OK(prompt);
  Count(*prompt);
  constexpr int kPerThread = 500;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<Session> sessions;
      for (int i = 0; i < kPerThread; ++i) {
        auto fork = prompt->Fork();
        if (!fork.ok()) return void(++wrong);
        sessions.push_back(*std::move(fork));
      }
      for (const float expected : {7.0F, 8.0F, 9.0F}) {
        for (const Session& session : sessions) {
          if (Count(session) != Floats({expected, 10 * expected})) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(wrong.load(), 0);
  CHECK_TRUE(g_instances.load() <= 4);
  CHECK_TRUE(Count(*prompt) == Floats({7, 70}));
}

TEST(SessionsWorkInAForkedChild) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto quiet = model->NewSession();
  const auto used = model->NewSession();
  REQUIRE_OK(quiet);
  REQUIRE_OK(used);
  Count(*quiet);
  g_most_running = 0;
  g_hold = true;
  std::thread busy([&] { Count(*used); });
  while (g_most_running == 0) usleep(100);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that would wait for ever
    g_hold = false;
    if (Count(*quiet) != Floats({7, 70})) _exit(1);
    const auto forked = quiet->Fork();
    if (!forked.ok() || Count(*forked) != Floats({8, 80})) _exit(2);
    if (used->Reset() || Count(*used) != Floats({6, 60})) _exit(3);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  g_hold = false;
  busy.join();
  CHECK_EQ(status, 0);
  CHECK_TRUE(Count(*quiet) == Floats({7, 70}));
}

TEST(AFailedSwapLeavesTheState) {
  const auto model = LoadCounter();
  REQUIRE_OK(model);
  const auto session = model->NewSession();
  REQUIRE_OK(session);
  Count(*session);
  CHECK_TRUE(!model->SwapWeights(Weights(5)));
  g_no_memory = true;
  CHECK_TRUE(model->SwapWeights(Weights(5)).has_value());
  g_no_memory = false;
  CHECK_TRUE(Count(*session) == Floats({7, 70}));
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
