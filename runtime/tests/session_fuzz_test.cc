// Sessions in an order made at random: calls, forks, resets, saved and loaded states, and sessions
// that end. Each returns what its own history says, whatever happens to the others.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/session.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"
#include "runtime/tests/fake_program.h"
#include "runtime/tests/fake_shim.h"
#include "runtime/tests/random.h"

namespace aoti::testing {
namespace {

constexpr int kOrders = 300;
constexpr int kSteps = 60;
constexpr float kStart = 5;  // of the counter in the weights file

std::string Weights() {
  const char* directory = std::getenv("TEST_TMPDIR");
  const float total = 10 * kStart;
  SafetensorsWriter writer;
  writer.Add("count", DType::kFloat32, {1}, &kStart);
  writer.Add("total", DType::kFloat32, {1}, &total);
  std::string path =
      std::filesystem::path(directory == nullptr ? "/tmp" : directory) / "orders.safetensors";
  CHECK_TRUE(writer.Write(path));
  return path;
}

// A session and the number of calls that its state has seen; a saved state and the same.
struct Tracked {
  Session session;
  int calls;
};
struct Saved {
  std::string state;
  int calls;
};

class Orders {
 public:
  Orders(const Model& model, std::uint64_t seed) : model_(model), random_(seed) {}

  void Step() {
    if (sessions_.empty() || random_.OneIn(10)) return New();
    Tracked& chosen = sessions_[random_.Index(sessions_.size())];
    switch (random_.In(0, 6)) {
      case 0:
        return Fork(chosen);
      case 1:
        CHECK_TRUE(!chosen.session.Reset());
        chosen.calls = 0;
        return;
      case 2:
        return Save(chosen);
      case 3:
        return Load(chosen);
      case 4:
        std::swap(chosen, sessions_.back());
        sessions_.pop_back();
        return;
      default:
        return Call(chosen);
    }
  }

  // All that are left.
  void CallAll() {
    for (Tracked& tracked : sessions_) Call(tracked);
  }

  int calls() const { return calls_; }

 private:
  void New() {
    auto session = model_.NewSession();
    REQUIRE_OK(session);
    sessions_.push_back({*std::move(session), 0});
  }

  void Fork(const Tracked& origin) {
    const int calls = origin.calls;
    auto fork = origin.session.Fork();
    REQUIRE_OK(fork);
    sessions_.push_back({*std::move(fork), calls});
  }

  void Save(const Tracked& from) {
    auto state = from.session.Save();
    REQUIRE_OK(state);
    saved_.push_back({*std::move(state), from.calls});
  }

  void Load(Tracked& into) {
    if (saved_.empty()) return;
    const Saved& saved = saved_[random_.Index(saved_.size())];
    CHECK_TRUE(!into.session.Load(saved.state));
    into.calls = saved.calls;
  }

  void Call(Tracked& tracked) {
    float cache = 0;
    const TensorRef<float, 1> input = {&cache, {1}};
    const std::vector<TensorView> views = {input.view()};
    const auto out = tracked.session.model().Run(views);
    REQUIRE_OK(out);
    ++tracked.calls;
    ++calls_;
    const float count = kStart + static_cast<float>(tracked.calls);
    CHECK_EQ(*static_cast<const float*>((*out)[0].data()), count);
    CHECK_EQ(*static_cast<const float*>((*out)[1].data()), 10 * count);
  }

  const Model& model_;
  Random random_;
  std::vector<Tracked> sessions_;
  std::vector<Saved> saved_;
  int calls_ = 0;
};

TEST(EverySessionHasItsOwnHistory) {
  const int tensors = LiveTensors();
  {
    const auto model = Model::Load(CounterSpec(), {.weights_path = Weights(), .num_runners = 2});
    REQUIRE_OK(model);
    int calls = 0;
    for (std::uint64_t seed = 0; seed < kOrders; ++seed) {
      Orders orders(*model, seed);
      for (int step = 0; step < kSteps; ++step) orders.Step();
      orders.CallAll();
      calls += orders.calls();
    }
    CHECK_TRUE(calls > 5'000);  // the test is worth little with few
  }
  CHECK_EQ(LiveTensors(), tensors);
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
