// The implementation of Model: the current weights, and a bounded pool of runners that share them.

#ifndef AOTI_RUNTIME_CORE_LOADED_MODEL_H_
#define AOTI_RUNTIME_CORE_LOADED_MODEL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
#include "runtime/core/session_state.h"
#include "runtime/core/weight_set.h"

namespace aoti::internal {

// Where the weights of a model come from: see LoadOptions.
struct WeightFiles {
  std::string weights_path;
  std::string adapter_path;
  bool copy_weights;
};

// Thread safe. A child of fork() has its own copy, with all runners free.
class LoadedModel final : private ForkSafe, public std::enable_shared_from_this<LoadedModel> {
 public:
  ~LoadedModel() { Unregister(); }

  static Result<std::shared_ptr<LoadedModel>> Load(const ProgramSpec& spec,
                                                   const LoadOptions& options);

  // The same for another method of the model that has these weights: a program with the same table
  // of weights. Join() follows.
  static Result<std::shared_ptr<LoadedModel>> Load(const ProgramSpec& spec,
                                                   const LoadOptions& options,
                                                   std::shared_ptr<const Weights> weights);

  // Makes them the methods of one model, whose weights are swapped together. Call it before any
  // other thread uses them.
  static void Join(const std::vector<std::shared_ptr<LoadedModel>>& methods);

  // The weights that the next call has.
  std::shared_ptr<const WeightSet> weights();

  // Waits until no other call has the session, if the program works on state, and until there is a
  // runner.
  Result<std::vector<Tensor>> Run(SessionState& session, std::span<const TensorView> inputs,
                                  const RunOptions& options);

  std::optional<Error> SwapWeights(const WeightFiles& files);

  std::optional<Error> ManualSeed(std::uint64_t seed) const;

  const ProgramSpec& spec() const { return spec_; }
  const char* isa() const { return variant_.isa; }
  DeviceType device() const { return variant_.device; }

 private:
  class Lease;
  class Place;
  class Methods;

  // Other weights, and a runner for them.
  struct Replacement {
    std::shared_ptr<const WeightSet> weights;
    std::unique_ptr<Runner> runner;
    std::vector<std::unique_ptr<Runner>> replaced;  // by Replace()
  };

  LoadedModel(const ProgramSpec& spec, const ProgramVariant& variant, const ProgramVTable& program,
              std::shared_ptr<Device> device, std::shared_ptr<const WeightSet> weights,
              std::size_t max_runners, const LoadOptions& options)
      : spec_(spec),
        variant_(variant),
        program_(program),
        device_(std::move(device)),
        max_runners_(max_runners),
        uses_state_(UsesState(spec, variant)),
        check_values_(options.check_values),
        with_graphs_(options.cuda_graphs),
        threads_(options.threads > 0 ? options.threads : spec.threads),
        current_(std::move(weights)) {
    Register();
  }

  // Whether the program reads or writes state: then it must not run while another one does.
  static bool UsesState(const ProgramSpec& spec, const ProgramVariant& variant);

  // A runner that no other call uses; waits until there is one. It prefers one that is bound to
  // this state.
  Result<std::unique_ptr<Runner>> Acquire(std::uint64_t state_id);
  void Release(std::unique_ptr<Runner> runner);

  Result<Replacement> Prepare(std::shared_ptr<const Weights> weights);
  // With mutex_ held. Allocates nothing after Reserve().
  void Reserve(Replacement& replacement) const;
  void Replace(Replacement& replacement);
  // All of the methods at once.
  static std::optional<Error> Replace(const std::vector<std::shared_ptr<LoadedModel>>& methods,
                                      const std::shared_ptr<const Weights>& weights);

  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  void UnlockInChild() override;

  const ProgramSpec& spec_;
  const ProgramVariant& variant_;
  const ProgramVTable& program_;
  const std::shared_ptr<Device> device_;  // null for a program that runs on the CPU
  const std::size_t max_runners_;
  const bool uses_state_;
  const bool check_values_;
  const bool with_graphs_;
  const int threads_;
  std::shared_ptr<Methods> methods_;  // null for the only program of a model

  std::mutex mutex_;
  std::condition_variable released_;
  // The rest is guarded by mutex_.
  std::shared_ptr<const WeightSet> current_;
  std::vector<std::unique_ptr<Runner>> idle_;  // all of the current weights
  std::size_t num_runners_ = 0;                // also those in use that have replaced weights
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_LOADED_MODEL_H_
