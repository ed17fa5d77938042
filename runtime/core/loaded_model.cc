#include "runtime/core/loaded_model.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/core/cpu.h"
#include "runtime/core/runfiles.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

// "2.13.0" for "2.13.0+cpu".
std::string_view WithoutLocalPart(std::string_view version) {
  return version.substr(0, version.find_first_not_of("0123456789."));
}

std::optional<Error> CheckVersion(const ProgramSpec& spec, const Shim& shim) {
  const std::string runtime = shim.Version();
  if (WithoutLocalPart(spec.torch_version) == runtime) return std::nullopt;
  return Error(ErrorCode::kVersionMismatch,
               StrCat(spec.name, ": compiled for torch ", spec.torch_version,
                      ", but this program runs with torch ", runtime,
                      "; link it with the torch of the toolchain that built the model"));
}

// Whether the program writes to weights, or reads those that another method writes to: then it must
// not run while one of these runs.
bool HasState(const ProgramSpec& spec, const ProgramVariant& variant) {
  return !spec.state.empty() ||
         std::ranges::any_of(variant.constants, [&spec](const ConstantSpec& constant) {
           return spec.weights[static_cast<std::size_t>(constant.weight)].mutated;
         });
}

Result<std::size_t> MaxRunners(const ProgramSpec& spec, bool has_state, int wanted) {
  if (wanted < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec.name, ": num_runners is ", wanted, ", must be 0 or more"));
  }
  if (has_state) return std::size_t{1};
  if (wanted > 0) return static_cast<std::size_t>(wanted);
  return std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

// The weights at the path, or those that were built with the model if it is empty.
Result<Weights> LoadWeights(const ProgramSpec& spec, std::string path, bool copy) {
  if (path.empty() && spec.embedded_begin != nullptr) return Weights::Embedded(spec);
  if (path.empty() && !spec.weights.empty()) {
    auto found = FindRunfile(spec.weights_runfile, &spec);
    if (!found.ok()) {
      return Error(found.error().code(), StrCat(spec.name, ": ", found.error().message()));
    }
    path = *std::move(found);
  }
  return Weights::Load(spec, path, copy);
}

}  // namespace

// Holds a runner, and gives it back when it is destroyed.
class LoadedModel::Lease {
 public:
  Lease(LoadedModel& model, std::unique_ptr<Runner> runner)
      : model_(model), runner_(std::move(runner)) {}
  ~Lease() { model_.Release(std::move(runner_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Runner* operator->() const { return runner_.get(); }

 private:
  LoadedModel& model_;
  std::unique_ptr<Runner> runner_;
};

// Holds the turn to work on the state, if there is one.
class LoadedModel::Turn {
 public:
  explicit Turn(StateTurn* turn) : turn_(turn) {
    if (turn_ != nullptr) turn_->Take();
  }
  ~Turn() {
    if (turn_ != nullptr) turn_->Give();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  StateTurn* const turn_;
};

// A runner's place in the pool. It is given back unless it is kept, also when memory runs out.
class LoadedModel::Place {
 public:
  explicit Place(LoadedModel& model) : model_(&model) {}
  ~Place() {
    if (model_ == nullptr) return;
    {
      const std::lock_guard lock(model_->mutex_);
      --model_->num_runners_;
    }
    model_->released_.notify_one();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void Keep() { model_ = nullptr; }

 private:
  LoadedModel* model_;
};

void StateTurn::Take() {
  std::unique_lock lock(mutex_);
  given_.wait(lock, [this] { return !taken_; });
  taken_ = true;
}

void StateTurn::Give() {
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
  }
  given_.notify_one();
}

void StateTurn::UnlockInChild() {
  taken_ = false;  // a call of a thread that the child does not have
  new (&given_) std::condition_variable;
  mutex_.unlock();
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Load(const ProgramSpec& spec,
                                                       const LoadOptions& options) {
  return Load(spec, options, Shared());
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Load(const ProgramSpec& spec,
                                                       const LoadOptions& options, Shared shared) {
  const auto variant = ChooseVariant(spec);
  if (!variant.ok()) return variant.error();
  const auto program = (*variant)->program(spec);
  if (!program.ok()) return program.error();
  if (auto error = CheckVersion(spec, Shim((*program)->shim))) return *std::move(error);
  const bool has_state = HasState(spec, **variant);
  const auto max_runners = MaxRunners(spec, has_state, options.num_runners);
  if (!max_runners.ok()) return max_runners.error();
  if (options.threads < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec.name, ": threads is ", options.threads, ", must be 0 or more"));
  }

  const bool is_method = shared.weights != nullptr;
  if (!is_method) {
    auto weights = LoadWeights(spec, options.weights_path, options.copy_weights);
    if (!weights.ok()) return std::move(weights).error();
    shared = {std::make_shared<const Weights>(*std::move(weights)), std::make_shared<StateTurn>()};
  }
  auto set = WeightSet::Make(spec, **variant, **program, std::move(shared.weights));
  if (!set.ok()) return std::move(set).error();
  auto model = std::unique_ptr<LoadedModel>(new LoadedModel(spec, **variant, **program,
                                                            *std::move(set), std::move(shared.turn),
                                                            *max_runners, has_state, options));
  model->is_method_ = is_method;
  // Makes the first runner now, so that a program that can't run fails here.
  auto runner = model->Acquire();
  if (!runner.ok()) return std::move(runner).error();
  model->Release(*std::move(runner));
  return model;
}

std::optional<Error> LoadedModel::SwapWeights(const std::string& path, bool copy) {
  if (spec_.weights.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec_.name, ": has no weights; there is nothing to swap"));
  }
  if (is_method_) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec_.name,
                        ": is one of several methods that share their weights, which "
                        "can't be swapped for one of them; load the model again"));
  }
  auto weights = LoadWeights(spec_, path, copy);
  if (!weights.ok()) return std::move(weights).error();
  {
    // All sets of a model share one state, so that it does not matter which set this one is.
    const std::lock_guard lock(mutex_);
    weights->ShareState(spec_, current_->weights());
  }
  auto set = WeightSet::Make(spec_, variant_, program_,
                             std::make_shared<const Weights>(*std::move(weights)));
  if (!set.ok()) return std::move(set).error();
  auto runner = Runner::Create(spec_, program_, *set);
  if (!runner.ok()) return std::move(runner).error();

  // Destroyed after the lock is released, because it frees the old weights if no call uses them.
  std::vector<std::unique_ptr<Runner>> idle;
  {
    const std::lock_guard lock(mutex_);
    idle.reserve(num_runners_ + 1);  // so that Release() has nothing to allocate
    std::swap(current_, *set);
    std::swap(idle_, idle);
    num_runners_ -= idle.size();
    if (num_runners_ < max_runners_) {
      idle_.push_back(*std::move(runner));
      ++num_runners_;
    }
  }
  released_.notify_all();
  return std::nullopt;
}

LoadedModel::Shared LoadedModel::ShareWeights() {
  is_method_ = true;
  return {current_->shared_weights(), turn_};
}

Result<std::vector<Tensor>> LoadedModel::Run(std::span<const TensorView> inputs) {
  auto runner = Acquire();
  if (!runner.ok()) return std::move(runner).error();
  const Lease lease(*this, *std::move(runner));
  const Turn turn(has_state_ ? turn_.get() : nullptr);
  return lease->Run(inputs, check_values_, threads_);
}

std::optional<Error> LoadedModel::ManualSeed(std::uint64_t seed) const {
  if (program_.shim.manual_seed == nullptr) {
    // The linker took slim without its generator, because no operator of this model uses it.
    if (program_.shim.set_packed != nullptr) return std::nullopt;
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec_.name, ": runs on libtorch; seed it with torch::manual_seed()"));
  }
  program_.shim.manual_seed(seed);
  return std::nullopt;
}

Result<std::unique_ptr<Runner>> LoadedModel::Acquire() {
  std::shared_ptr<const WeightSet> weights;
  {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !idle_.empty() || num_runners_ < max_runners_; });
    if (!idle_.empty()) {
      auto runner = std::move(idle_.back());
      idle_.pop_back();
      return runner;
    }
    idle_.reserve(num_runners_ + 1);  // so that Release() has nothing to allocate
    ++num_runners_;
    weights = current_;
  }
  // Outside the lock, so that callers who find an idle runner need not wait.
  Place place(*this);
  auto runner = Runner::Create(spec_, program_, std::move(weights));
  if (runner.ok()) place.Keep();
  return runner;
}

void LoadedModel::Release(std::unique_ptr<Runner> runner) {
  {
    const std::lock_guard lock(mutex_);
    if (&runner->weights() == current_.get()) idle_.push_back(std::move(runner));
  }
  if (runner != nullptr) {  // the weights were swapped while it ran
    runner.reset();
    const std::lock_guard lock(mutex_);
    --num_runners_;
  }
  released_.notify_one();
}

void LoadedModel::UnlockInChild() {
  // The runners in use belong to threads that the child does not have: new ones are made in their
  // place. No thread of the child waits, whatever state the condition variable was copied in.
  num_runners_ = idle_.size();
  new (&released_) std::condition_variable;
  mutex_.unlock();
}

}  // namespace aoti::internal
