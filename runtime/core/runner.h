// One instance of a program, with the memory that one call needs.

#ifndef AOTI_RUNTIME_CORE_RUNNER_H_
#define AOTI_RUNTIME_CORE_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"
#include "runtime/core/buffer.h"
#include "runtime/core/call_graphs.h"
#include "runtime/core/check.h"
#include "runtime/core/device.h"
#include "runtime/core/program.h"
#include "runtime/core/session_state.h"
#include "runtime/core/shim.h"
#include "runtime/core/weight_set.h"
#include "runtime/core/weights.h"

namespace aoti::internal {

// Runs one call at a time. Different runners of one model may run at the same time.
class Runner {
 public:
  // The references must outlive the runner, which shares the weights and runs where these are.
  // with_graphs: as LoadOptions::cuda_graphs. May throw DeviceError.
  static Result<std::unique_ptr<Runner>> Create(const ProgramSpec& spec,
                                                const ProgramVariant& variant,
                                                const ProgramVTable& program,
                                                std::shared_ptr<const WeightSet> weights,
                                                bool with_graphs);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const WeightSet& weights() const { return *set_; }

  // The next calls read and write this state, which must live as long as they run. A program that
  // works on state runs only after this. Costs nothing if the state is the one of the last call.
  std::optional<Error> Bind(const State& state);
  // The id of that state; 0 for none.
  std::uint64_t state_id() const { return state_id_; }

  // threads: as LoadOptions::threads. May throw DeviceError.
  Result<std::vector<Tensor>> Run(std::span<const TensorView> inputs, const RunOptions& options,
                                  bool check_values, int threads);

 private:
  Runner(const ProgramSpec& spec, const ProgramVariant& variant, const ProgramVTable& program,
         std::shared_ptr<const WeightSet> weights, std::unique_ptr<DeviceQueue> queue,
         void* instance)
      : spec_(spec),
        variant_(variant),
        program_(program),
        shim_(program.shim, NumberOf(*weights)),
        set_(std::move(weights)),
        weights_(set_->weights()),
        queue_(std::move(queue)),
        instance_(instance),
        scratch_(spec.inputs.size()) {
    if (queue_ != nullptr) plan_.cuda_device = NumberOf(*set_).index;
  }

  static DeviceNumber NumberOf(const WeightSet& weights);

  // graph: to whose memory inputs are copied; null: to the queue's.
  std::optional<Error> PrepareInputs(std::span<const TensorView> inputs, DeviceGraph* graph);
  std::optional<Error> PrepareInput(std::size_t i, const TensorView& given, DeviceGraph* graph);
  std::optional<Error> SetConstants(std::span<const AtenTensorHandle> constants);
  std::optional<Error> Execute(int threads);
  Result<std::vector<Tensor>> TakeOutputs(bool on_device);
  Result<Tensor> TakeOutput(std::size_t i, bool on_device);

  // Of a program on a device (runner_device.cc):
  // Waits for what may still write to inputs on the device.
  void WaitForInputs(std::span<const TensorView> inputs, const RunOptions& options);
  // An input's elements in the CPU's memory, which `buffer` keeps.
  const void* DownloadInput(const TensorView& given, Buffer& buffer);
  // Copies the inputs that the program wrote to back into the caller's memory.
  void DownloadInputs(std::span<const TensorView> inputs);
  // A contiguous copy of an output on the device, in the CPU's memory or there.
  Tensor CopyOutput(const HandleInfo& info, DType dtype, bool on_device);
  // Of calls that are recorded (runner_graph.cc):
  // Prepares the inputs and launches the graph of a call like this one. False: the call is to run
  // without a graph.
  Result<bool> ExecuteGraph(std::span<const TensorView> inputs, const RunOptions& options,
                            int threads);
  bool Record(CallGraph& call, std::span<const TensorView> inputs, int threads);
  void SetKey(std::span<const TensorView> inputs, const RunOptions& options);
  // Ends a call: waits for its work, unless the caller's stream may go on with it.
  void Finish(std::span<const TensorView> inputs, const RunOptions& options);

  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  // Whether an output in this memory must be copied before the caller can own it.
  bool IsTaken(const Range& range) const;

  const ProgramSpec& spec_;
  const ProgramVariant& variant_;
  const ProgramVTable& program_;
  const Shim shim_;
  const std::shared_ptr<const WeightSet> set_;
  const Weights& weights_;                    // of set_
  const std::unique_ptr<DeviceQueue> queue_;  // null on the CPU
  void* const instance_;
  const State* state_ = nullptr;  // of the last call; may have been freed since
  std::uint64_t state_id_ = 0;
  std::vector<OwnedHandle> state_constants_;  // views of that state
  // Kept from call to call, to avoid allocations.
  CallPlan plan_;
  std::vector<Buffer> scratch_;  // by input: a copy in the layout that the program expects
  std::vector<OwnedHandle> inputs_;
  // Memory of this call's inputs, and of outputs that were returned without a copy.
  std::vector<Range> taken_;
  std::vector<OwnedHandle> outputs_;    // null if the handle is the same as an earlier output's
  std::vector<AtenTensorHandle> raw_;   // the inputs during a call, then the outputs
  std::unique_ptr<CallGraphs> graphs_;  // null without graphs
  std::vector<std::uint64_t> key_;      // of this call's graph
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_RUNNER_H_
