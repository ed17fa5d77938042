#include "runtime/core/session_state.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

bool HasState(const ProgramSpec& spec) {
  return std::ranges::any_of(spec.weights, [](const WeightSpec& weight) { return weight.mutated; });
}

State::State(Device* device) : id_(NextId()), device_(device) {}

State::State(const ProgramSpec& spec, const Weights& initial, Device* device) : State(device) {
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    if (spec.weights[i].mutated) Add(i, initial.data(i), BytesOf(spec.weights[i]), nullptr);
  }
}

State::State(const State& other, Device* device) : State(device) {
  items_.reserve(other.items_.size());
  for (const Item& item : other.items_) Add(item.weight, item.data(), item.bytes, other.device_);
}

Result<std::unique_ptr<State>> State::Parse(const ProgramSpec& spec, std::string_view saved) {
  std::vector<WeightSpec> weights;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    if (!spec.weights[i].mutated) continue;
    weights.push_back(spec.weights[i]);
    weights.back().mutated = false;
    indices.push_back(i);
  }
  ProgramSpec file = spec;
  file.weights = weights;
  file.packed = {};
  const auto values =
      Weights::Borrow(file, std::as_bytes(std::span(saved)), "the values of the saved state");
  if (!values.ok()) return values.error();
  auto state = std::unique_ptr<State>(new State(nullptr));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    state->Add(indices[i], values->data(i), BytesOf(weights[i]), nullptr);
  }
  return state;
}

void State::Add(std::size_t weight, const void* data, std::size_t bytes, Device* from) {
  Item item{.weight = weight, .bytes = bytes, .buffer = {}, .memory = nullptr};
  if (device_ == nullptr) {
    item.buffer = Buffer(bytes);
  } else {
    item.memory = device_->Allocate(bytes);
  }
  if (bytes > 0) {
    if (device_ != nullptr) {
      device_->Copy(item.data(), data, bytes,
                    from == nullptr ? CopyKind::kUpload : CopyKind::kOnDevice);
    } else if (from != nullptr) {
      from->Copy(item.data(), data, bytes, CopyKind::kDownload);
    } else {
      std::memcpy(item.data(), data, bytes);
    }
  }
  items_.push_back(std::move(item));
}

void* State::data(std::size_t weight) const {
  return std::ranges::find(items_, weight, &Item::weight)->data();
}

bool State::Contains(const void* address) const {
  return std::ranges::any_of(
      items_, [address](const Item& item) { return Within(address, item.data(), item.bytes); });
}

std::vector<StoredTensor> State::StoredTensors(const ProgramSpec& spec) const {
  std::vector<StoredTensor> tensors;
  for (const Item& item : items_) {
    const WeightSpec& weight = spec.weights[item.weight];
    tensors.push_back({weight.name,
                       weight.dtype,
                       {weight.sizes.begin(), weight.sizes.end()},
                       {static_cast<const std::byte*>(item.data()), item.bytes}});
  }
  return tensors;
}

SessionState::~SessionState() {
  Unregister();
  Set(nullptr);
}

void SessionState::Take() {
  std::unique_lock lock(mutex_);
  given_.wait(lock, [this] { return !taken_; });
  taken_ = true;
}

void SessionState::Give() {
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
  }
  given_.notify_one();
}

std::shared_ptr<const State> SessionState::Read(const ProgramSpec& spec,
                                                const Weights& initial) const {
  if (state_ == nullptr) return std::make_shared<const State>(spec, initial, nullptr);
  if (state_->device() != nullptr) return std::make_shared<const State>(*state_, nullptr);
  return state_;
}

State& SessionState::Writable(const ProgramSpec& spec, const Weights& initial, Device* device) {
  if (state_ == nullptr) {
    Set(std::make_shared<State>(spec, initial, device));
  } else if (state_->sessions_.load(std::memory_order_acquire) > 1 || state_->device() != device) {
    Set(std::make_shared<State>(*state_, device));
  }
  return *state_;
}

std::shared_ptr<SessionState> SessionState::Fork() const {
  auto fork = std::make_shared<SessionState>();
  if (state_ != nullptr) {
    state_->sessions_.fetch_add(1, std::memory_order_relaxed);
    fork->Set(state_);
  }
  return fork;
}

void SessionState::Replace(std::unique_ptr<State> state) { Set(std::move(state)); }

void SessionState::Set(std::shared_ptr<State> state) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(state_, state);
    // What this session read of the old memory comes before what a session that is then alone
    // writes to it.
    if (state != nullptr) state->sessions_.fetch_sub(1, std::memory_order_release);
  }
}

void SessionState::UnlockInChild() {
  taken_ = false;  // a call of a thread that the child does not have
  new (&given_) std::condition_variable;
  mutex_.unlock();
}

}  // namespace aoti::internal
