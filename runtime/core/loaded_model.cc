#include "runtime/core/loaded_model.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/core/cpu.h"
#include "runtime/core/layout.h"
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

Result<Weights> LoadWeights(const ProgramSpec& spec, const LoadOptions& options) {
  std::string path = options.weights_path;
  if (path.empty() && spec.embedded_begin != nullptr) return Weights::Embedded(spec);
  if (path.empty() && !spec.weights.empty()) {
    auto found = FindRunfile(spec.weights_runfile, &spec);
    if (!found.ok()) {
      return Error(found.error().code(), StrCat(spec.name, ": ", found.error().message()));
    }
    path = *std::move(found);
  }
  return Weights::Load(spec, path, options.copy_weights);
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
  return Load(spec, options, nullptr);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Load(const ProgramSpec& spec,
                                                       const LoadOptions& options,
                                                       std::shared_ptr<SharedWeights> shared) {
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

  if (shared == nullptr) {
    auto weights = LoadWeights(spec, options);
    if (!weights.ok()) return std::move(weights).error();
    shared = std::make_shared<SharedWeights>(*std::move(weights));
  }
  auto model = std::unique_ptr<LoadedModel>(new LoadedModel(
      spec, **variant, **program, std::move(shared), *max_runners, has_state, options));
  if (auto error = model->MakeConstants()) return *std::move(error);
  if (auto error = model->AttachPacked()) return *std::move(error);
  // Makes the first runner now, so that a program that can't run fails here.
  auto runner = model->Acquire();
  if (!runner.ok()) return std::move(runner).error();
  model->Release(*std::move(runner));
  return model;
}

std::optional<Error> LoadedModel::MakeConstants() {
  const Shim shim(program_.shim);
  for (const ConstantSpec& constant : variant_.constants) {
    const auto index = static_cast<std::size_t>(constant.weight);
    const WeightSpec& weight = spec_.weights[index];
    const auto available = CheckedNumel(weight.sizes, SizeOf(weight.dtype)).value_or(0) *
                           static_cast<std::int64_t>(SizeOf(weight.dtype));
    const std::int64_t elements = StorageElements(constant.sizes, constant.strides.data());
    if (elements > 0 &&
        (constant.offset + elements) * static_cast<std::int64_t>(SizeOf(constant.dtype)) >
            available) {
      return Error(ErrorCode::kInternal, StrCat(spec_.name, ": the program's view of weight \"",
                                                weight.name, "\" reaches past its end"));
    }
    auto handle = shim.BorrowMemory(weights_.data(index), constant.dtype, constant.sizes,
                                    constant.strides, constant.offset);
    if (!handle.ok()) return std::move(handle).error();
    raw_constants_.push_back(handle->get());
    constants_.push_back(*std::move(handle));
  }
  return std::nullopt;
}

std::optional<Error> LoadedModel::AttachPacked() {
  for (std::size_t p = 0; p < spec_.packed.size(); ++p) {
    if (!spec_.reads_packed.empty() && !spec_.reads_packed[p]) continue;
    const PackedSpec& packed = spec_.packed[p];
    const std::span<const std::byte> bytes = weights_.packed(p);
    if (bytes.empty()) continue;  // not packed: operators read the plain weight
    for (std::size_t i = 0; i < variant_.constants.size(); ++i) {
      if (variant_.constants[i].weight != packed.weight) continue;
      if (program_.shim.set_packed == nullptr ||
          program_.shim.set_packed(raw_constants_[i], packed.kind, bytes.data(), bytes.size()) !=
              AOTI_TORCH_SUCCESS) {
        return Error(ErrorCode::kInternal,
                     StrCat(spec_.name, ": can't use the packed weight \"", packed.name, "\""));
      }
    }
  }
  return std::nullopt;
}

Result<std::vector<Tensor>> LoadedModel::Run(std::span<const TensorView> inputs) {
  auto runner = Acquire();
  if (!runner.ok()) return std::move(runner).error();
  const Lease lease(*this, *std::move(runner));
  const Turn turn(has_state_ ? &shared_->turn : nullptr);
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
  }
  // Outside the lock, so that callers who find an idle runner need not wait.
  Place place(*this);
  auto runner = Runner::Create(spec_, program_, weights_, raw_constants_);
  if (runner.ok()) place.Keep();
  return runner;
}

void LoadedModel::Release(std::unique_ptr<Runner> runner) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(runner));
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
