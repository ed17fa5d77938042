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

Result<std::size_t> MaxRunners(const ProgramSpec& spec, int wanted) {
  if (wanted < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec.name, ": num_runners is ", wanted, ", must be 0 or more"));
  }
  if (wanted > 0) return static_cast<std::size_t>(wanted);
  return std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

// The weights at the path, or those that were built with the model if it is empty.
Result<Weights> LoadBase(const ProgramSpec& spec, std::string path, bool copy) {
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

Result<Weights> LoadWeights(const ProgramSpec& spec, const WeightFiles& files) {
  auto weights = LoadBase(spec, files.weights_path, files.copy_weights);
  if (!weights.ok() || files.adapter_path.empty()) return weights;
  if (auto error = weights->Adapt(spec, files.adapter_path, files.copy_weights)) {
    return *std::move(error);
  }
  return weights;
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

// What the methods of one model have in common. Locked before them, also by fork(): it is made
// after they are.
class LoadedModel::Methods final : private ForkSafe {
 public:
  explicit Methods(const std::vector<std::shared_ptr<LoadedModel>>& methods)
      : methods_(methods.begin(), methods.end()) {
    Register();
  }
  ~Methods() { Unregister(); }

  // Those whose Model exists.
  std::vector<std::shared_ptr<LoadedModel>> Alive() const {
    std::vector<std::shared_ptr<LoadedModel>> alive;
    for (const auto& method : methods_) {
      if (auto model = method.lock()) alive.push_back(std::move(model));
    }
    return alive;
  }

  std::mutex mutex;  // held by a swap

 private:
  void Lock() override { mutex.lock(); }
  void Unlock() override { mutex.unlock(); }
  void UnlockInChild() override { mutex.unlock(); }

  const std::vector<std::weak_ptr<LoadedModel>> methods_;
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

Result<std::shared_ptr<LoadedModel>> LoadedModel::Load(const ProgramSpec& spec,
                                                       const LoadOptions& options) {
  return Load(spec, options, nullptr);
}

Result<std::shared_ptr<LoadedModel>> LoadedModel::Load(const ProgramSpec& spec,
                                                       const LoadOptions& options,
                                                       std::shared_ptr<const Weights> weights) {
  const auto variant = ChooseVariant(spec, options.device);
  if (!variant.ok()) return variant.error();
  const auto program = (*variant)->program(spec);
  if (!program.ok()) return program.error();
  if (auto error = CheckVersion(spec, Shim((*program)->shim))) return *std::move(error);
  const auto max_runners = MaxRunners(spec, options.num_runners);
  if (!max_runners.ok()) return max_runners.error();
  if (options.threads < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec.name, ": threads is ", options.threads, ", must be 0 or more"));
  }

  std::shared_ptr<Device> device;
  if ((*program)->cuda != nullptr) {
    device = (*program)->open_device(*(*program)->cuda, options.cuda_device);
  }

  if (weights == nullptr) {
    auto loaded =
        LoadWeights(spec, {options.weights_path, options.adapter_path, options.copy_weights});
    if (!loaded.ok()) return std::move(loaded).error();
    weights = std::make_shared<const Weights>(*std::move(loaded));
  }
  auto set = WeightSet::Make(spec, **variant, **program, device, std::move(weights));
  if (!set.ok()) return std::move(set).error();
  auto model = std::shared_ptr<LoadedModel>(new LoadedModel(
      spec, **variant, **program, std::move(device), *std::move(set), *max_runners, options));
  // Makes the first runner now, so that a program that can't run fails here.
  auto runner = model->Acquire(0);
  if (!runner.ok()) return std::move(runner).error();
  model->Release(*std::move(runner));
  return model;
}

std::optional<Error> LoadedModel::SwapWeights(const WeightFiles& files) {
  if (spec_.weights.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(spec_.name, ": has no weights; there is nothing to swap"));
  }
  // Two swaps by different methods come one after the other, so that all end with the same weights.
  std::unique_lock<std::mutex> lock;
  std::vector<std::shared_ptr<LoadedModel>> methods;
  if (methods_ == nullptr) {
    methods.push_back(shared_from_this());
  } else {
    lock = std::unique_lock(methods_->mutex);
    methods = methods_->Alive();
  }
  auto weights = LoadWeights(spec_, files);
  if (!weights.ok()) return std::move(weights).error();
  return Replace(methods, std::make_shared<const Weights>(*std::move(weights)));
}

std::optional<Error> LoadedModel::Replace(const std::vector<std::shared_ptr<LoadedModel>>& methods,
                                          const std::shared_ptr<const Weights>& weights) {
  // Destroyed after the locks are released, because that frees the old weights if no call uses
  // them.
  std::vector<Replacement> replacements;
  for (const auto& method : methods) {
    auto replacement = method->Prepare(weights);
    if (!replacement.ok()) return std::move(replacement).error();
    replacements.push_back(*std::move(replacement));
  }
  {
    std::vector<std::unique_lock<std::mutex>> locks;
    // In the order in which fork() locks them: the last one made is the first.
    for (auto method = methods.rbegin(); method != methods.rend(); ++method) {
      locks.emplace_back((*method)->mutex_);
    }
    for (std::size_t i = 0; i < methods.size(); ++i) methods[i]->Reserve(replacements[i]);
    for (std::size_t i = 0; i < methods.size(); ++i) methods[i]->Replace(replacements[i]);
  }
  for (const auto& method : methods) method->released_.notify_all();
  return std::nullopt;
}

Result<LoadedModel::Replacement> LoadedModel::Prepare(std::shared_ptr<const Weights> weights) {
  auto set = WeightSet::Make(spec_, variant_, program_, device_, std::move(weights));
  if (!set.ok()) return std::move(set).error();
  auto runner = Runner::Create(spec_, variant_, program_, *set, with_graphs_);
  if (!runner.ok()) return std::move(runner).error();
  Replacement replacement;
  replacement.weights = *std::move(set);
  replacement.runner = *std::move(runner);
  return replacement;
}

void LoadedModel::Reserve(Replacement& replacement) const {
  replacement.replaced.reserve(num_runners_ + 1);  // so that Release() has nothing to allocate
}

void LoadedModel::Replace(Replacement& replacement) {
  std::swap(current_, replacement.weights);
  std::swap(idle_, replacement.replaced);
  num_runners_ -= replacement.replaced.size();
  if (num_runners_ < max_runners_) {
    idle_.push_back(std::move(replacement.runner));
    ++num_runners_;
  }
}

void LoadedModel::Join(const std::vector<std::shared_ptr<LoadedModel>>& methods) {
  const auto joined = std::make_shared<Methods>(methods);
  for (const auto& method : methods) method->methods_ = joined;
}

std::shared_ptr<const WeightSet> LoadedModel::weights() {
  const std::lock_guard lock(mutex_);
  return current_;
}

bool LoadedModel::UsesState(const ProgramSpec& spec, const ProgramVariant& variant) {
  return std::ranges::any_of(variant.constants, [&spec](const ConstantSpec& constant) {
    return spec.weights[static_cast<std::size_t>(constant.weight)].mutated;
  });
}

Result<std::vector<Tensor>> LoadedModel::Run(SessionState& session,
                                             std::span<const TensorView> inputs,
                                             const RunOptions& options) {
  // The turn comes first, so that calls that wait for it have no runner that others could use.
  std::optional<Turn> turn;
  if (uses_state_) turn.emplace(session);
  auto runner = Acquire(uses_state_ ? session.id() : 0);
  if (!runner.ok()) return std::move(runner).error();
  const Lease lease(*this, *std::move(runner));
  if (uses_state_) {
    const State& state = session.Writable(spec_, lease->weights().weights(), device_.get());
    if (auto error = lease->Bind(state)) return *std::move(error);
  }
  return lease->Run(inputs, options, check_values_, threads_);
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

Result<std::unique_ptr<Runner>> LoadedModel::Acquire(std::uint64_t state_id) {
  std::shared_ptr<const WeightSet> weights;
  {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !idle_.empty() || num_runners_ < max_runners_; });
    if (!idle_.empty()) {
      const auto bound = std::ranges::find(idle_, state_id, &Runner::state_id);
      if (bound != idle_.end()) std::swap(*bound, idle_.back());
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
  auto runner = Runner::Create(spec_, variant_, program_, std::move(weights), with_graphs_);
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
