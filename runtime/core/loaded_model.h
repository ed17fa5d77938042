// The implementation of Model: the current weights, and a bounded pool of runners that share them.

#ifndef AOTI_RUNTIME_CORE_LOADED_MODEL_H_
#define AOTI_RUNTIME_CORE_LOADED_MODEL_H_

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/fork.h"
#include "runtime/core/runner.h"
#include "runtime/core/weight_set.h"

namespace aoti::internal {

// Lets one call at a time work on state that several programs share. Thread safe; free in a child
// of fork().
class StateTurn final : private ForkSafe {
 public:
  StateTurn() { Register(); }
  ~StateTurn() { Unregister(); }

  void Take();
  void Give();

 private:
  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  void UnlockInChild() override;

  std::mutex mutex_;
  std::condition_variable given_;
  bool taken_ = false;  // guarded by mutex_
};

// Thread safe. A child of fork() has its own copy, with all runners free.
class LoadedModel final : private ForkSafe {
 public:
  // What the methods of one model have in common.
  struct Shared {
    std::shared_ptr<const Weights> weights;
    std::shared_ptr<StateTurn> turn;
  };

  ~LoadedModel() { Unregister(); }

  static Result<std::unique_ptr<LoadedModel>> Load(const ProgramSpec& spec,
                                                   const LoadOptions& options);

  // The same for another method of the model that has these weights: a program with the same table
  // of weights.
  static Result<std::unique_ptr<LoadedModel>> Load(const ProgramSpec& spec,
                                                   const LoadOptions& options, Shared shared);

  // What another method of this model is loaded with. Call it before any other thread uses this
  // object, whose weights can't be swapped after that.
  Shared ShareWeights();

  Result<std::vector<Tensor>> Run(std::span<const TensorView> inputs);

  std::optional<Error> SwapWeights(const std::string& path, bool copy);

  std::optional<Error> ManualSeed(std::uint64_t seed) const;

  const ProgramSpec& spec() const { return spec_; }
  const char* isa() const { return variant_.isa; }

 private:
  class Lease;
  class Place;
  class Turn;

  LoadedModel(const ProgramSpec& spec, const ProgramVariant& variant, const ProgramVTable& program,
              std::shared_ptr<const WeightSet> weights, std::shared_ptr<StateTurn> turn,
              std::size_t max_runners, bool has_state, const LoadOptions& options)
      : spec_(spec),
        variant_(variant),
        program_(program),
        turn_(std::move(turn)),
        max_runners_(max_runners),
        has_state_(has_state),
        check_values_(options.check_values),
        threads_(options.threads > 0 ? options.threads : spec.threads),
        current_(std::move(weights)) {
    Register();
  }

  // A runner that no other call uses; waits until there is one.
  Result<std::unique_ptr<Runner>> Acquire();
  void Release(std::unique_ptr<Runner> runner);

  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  void UnlockInChild() override;

  const ProgramSpec& spec_;
  const ProgramVariant& variant_;
  const ProgramVTable& program_;
  const std::shared_ptr<StateTurn> turn_;
  const std::size_t max_runners_;
  const bool has_state_;
  const bool check_values_;
  const int threads_;
  bool is_method_ = false;

  std::mutex mutex_;
  std::condition_variable released_;
  // The rest is guarded by mutex_.
  std::shared_ptr<const WeightSet> current_;
  std::vector<std::unique_ptr<Runner>> idle_;  // all of the current weights
  std::size_t num_runners_ = 0;                // also those in use that have replaced weights
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_LOADED_MODEL_H_
