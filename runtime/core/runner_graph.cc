// Calls whose kernels are recorded and launched as one: see LoadOptions::cuda_graphs.

#include <utility>

#include "runtime/core/runner.h"

namespace aoti::internal {

void Runner::SetKey(std::span<const TensorView> inputs, const RunOptions& options) {
  // The memory of a graph belongs to a stream, and weights that are written to to a state. Other
  // weights are the same in all calls of a runner.
  key_ = {reinterpret_cast<std::uintptr_t>(options.cuda_stream), state_id_};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const std::int64_t size : inputs[i].sizes) {
      key_.push_back(static_cast<std::uint64_t>(size));
    }
    // The program writes to these in place.
    const bool in_place = spec_.inputs[i].mutated && inputs[i].cuda_device != TensorView::kCpu;
    if (spec_.inputs[i].mutated) {
      key_.push_back(in_place ? reinterpret_cast<std::uintptr_t>(inputs[i].data) : 0);
    }
  }
}

bool Runner::Record(CallGraph& call, std::span<const TensorView> inputs, int threads) {
  bool recorded = false;
  try {
    call.graph = queue_->NewGraph();
    if (!PrepareInputs(inputs, call.graph.get())) {
      recorded = call.graph->Record([&] {
        if (Execute(threads)) return false;
        // An output in the CPU's memory would be the same in all calls.
        for (AtenTensorHandle output : raw_) {
          if (output == nullptr) return false;
          const auto info = shim_.Inspect(output);
          if (!info.ok() || !info->on_device) return false;
        }
        return true;
      });
    }
  } catch (const DeviceError&) {
    // The call without a graph reports what is wrong, if it is not the recording.
    recorded = false;
  }
  if (recorded) {
    call.outputs = std::move(outputs_);
    call.raw = raw_;
  } else {
    call.recordable = false;
    call.graph = nullptr;
  }
  outputs_.clear();
  return recorded;
}

Result<bool> Runner::ExecuteGraph(std::span<const TensorView> inputs, const RunOptions& options,
                                  int threads) {
  SetKey(inputs, options);
  CallGraph* call = graphs_->Find(key_);
  if (call == nullptr || !call->recordable) return false;
  if (call->graph == nullptr) {
    if (!Record(*call, inputs, threads)) return false;
  } else {
    if (auto error = PrepareInputs(inputs, call->graph.get())) return *std::move(error);
  }
  call->graph->Replay();
  raw_ = call->raw;
  // The caller gets copies: the next replay writes to the same memory.
  outputs_.clear();
  outputs_.resize(raw_.size());
  return true;
}

}  // namespace aoti::internal
