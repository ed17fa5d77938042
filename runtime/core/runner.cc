#include "runtime/core/runner.h"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "runtime/core/layout.h"
#include "runtime/core/parallel.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

// Data of tensors without elements: the C ABI does not allow null pointers.
alignas(64) std::byte g_nothing[64];

Error Disagreement(const ProgramSpec& spec, const char* what, std::size_t program,
                   std::size_t table) {
  return {ErrorCode::kInternal,
          StrCat(spec.name, ": the program has ", program, " ", what, ", its tables say ", table)};
}

// Calls `function`, which calls generated code, and turns its exceptions into errors.
template <typename Function>
std::optional<Error> Guarded(const ProgramSpec& spec, const Shim& shim, const Function& function) {
  try {
    function();
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, StrCat(spec.name, ": out of memory"));
  } catch (const std::exception& exception) {
    return Error(ErrorCode::kExecutionFailed, StrCat(spec.name, ": ", shim.Describe(exception)));
  } catch (...) {
    return Error(ErrorCode::kExecutionFailed, StrCat(spec.name, ": unknown exception"));
  }
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::Create(const ProgramSpec& spec,
                                               const ProgramVariant& variant,
                                               const ProgramVTable& program,
                                               std::shared_ptr<const WeightSet> weights,
                                               bool with_graphs) {
  const std::span<const AtenTensorHandle> constants = weights->constants();
  const Shim shim(program.shim);
  std::unique_ptr<DeviceQueue> queue;
  if (weights->device() != nullptr) queue = weights->device()->NewQueue();
  const std::int32_t device = NumberOf(*weights).index;
  void* instance = nullptr;
  if (auto error = Guarded(spec, shim, [&] { instance = program.create(device); })) {
    return *std::move(error);
  }
  auto runner = std::unique_ptr<Runner>(
      new Runner(spec, variant, program, std::move(weights), std::move(queue), instance));
  const ProgramCounts counts = program.counts(instance);
  if (counts.inputs != spec.inputs.size()) {
    return Disagreement(spec, "inputs", counts.inputs, spec.inputs.size());
  }
  if (counts.outputs != spec.outputs.size()) {
    return Disagreement(spec, "outputs", counts.outputs, spec.outputs.size());
  }
  if (counts.constants != constants.size()) {
    return Disagreement(spec, "constants", counts.constants, constants.size());
  }
  if (auto error = runner->SetConstants(constants)) return *std::move(error);
  if (with_graphs && runner->queue_ != nullptr) runner->graphs_ = std::make_unique<CallGraphs>();
  return runner;
}

Runner::~Runner() {
  // What the last call left on the device goes back before the queue does.
  outputs_.clear();
  inputs_.clear();
  graphs_.reset();
  program_.destroy(instance_);
}

DeviceNumber Runner::NumberOf(const WeightSet& weights) {
  return weights.device() == nullptr ? DeviceNumber() : weights.device()->number();
}

std::optional<Error> Runner::SetConstants(std::span<const AtenTensorHandle> constants) {
  return Guarded(spec_, shim_, [&] { program_.set_constants(instance_, constants.data()); });
}

std::optional<Error> Runner::Bind(const State& state) {
  if (state.id() == state_id_) return std::nullopt;
  state_id_ = 0;
  const std::span<const AtenTensorHandle> shared = set_->constants();
  std::vector<AtenTensorHandle> constants(shared.begin(), shared.end());
  std::vector<OwnedHandle> views;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const ConstantSpec& constant = variant_.constants[i];
    const auto weight = static_cast<std::size_t>(constant.weight);
    if (!spec_.weights[weight].mutated) continue;
    auto view = shim_.BorrowMemory(state.data(weight), constant.dtype, constant.sizes,
                                   constant.strides, constant.offset);
    if (!view.ok()) return std::move(view).error();
    constants[i] = view->get();
    views.push_back(*std::move(view));
  }
  if (auto error = SetConstants(constants)) return error;
  state_constants_ = std::move(views);
  state_ = &state;
  state_id_ = state.id();
  return std::nullopt;
}

Result<std::vector<Tensor>> Runner::Run(std::span<const TensorView> inputs,
                                        const RunOptions& options, bool check_values, int threads) {
  if (auto error = CheckCall(spec_, inputs, check_values, plan_)) return *std::move(error);
  const QueueScope scope(queue_.get(), options.cuda_stream);
  if (queue_ != nullptr) WaitForInputs(inputs, options);
  bool executed = false;
  if (graphs_ != nullptr) {
    const auto replayed = ExecuteGraph(inputs, options, threads);
    if (!replayed.ok()) return replayed.error();
    executed = *replayed;
  }
  if (!executed) {
    if (auto error = PrepareInputs(inputs, nullptr)) return *std::move(error);
    if (auto error = Execute(threads)) return *std::move(error);
  }
  if (queue_ != nullptr) DownloadInputs(inputs);
  auto results = TakeOutputs(options.outputs_on_device);
  if (queue_ != nullptr) Finish(inputs, options);
  return results;
}

Result<std::vector<Tensor>> Runner::TakeOutputs(bool on_device) {
  std::vector<Tensor> results;
  results.reserve(spec_.outputs.size());
  for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
    auto result = TakeOutput(i, on_device);
    if (!result.ok()) return std::move(result).error();
    results.push_back(*std::move(result));
  }
  return results;
}

std::optional<Error> Runner::PrepareInputs(std::span<const TensorView> inputs, DeviceGraph* graph) {
  inputs_.clear();
  taken_.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto error = PrepareInput(i, inputs[i], graph)) return error;
  }
  return std::nullopt;
}

std::optional<Error> Runner::PrepareInput(std::size_t i, const TensorView& given,
                                          DeviceGraph* graph) {
  const InputPlan& plan = plan_.inputs[i];
  void* data = plan.numel == 0 ? g_nothing : given.data;
  const bool on_device = given.cuda_device != TensorView::kCpu;
  const std::size_t element_size = SizeOf(given.dtype);
  std::size_t bytes =
      element_size * static_cast<std::size_t>(StorageElements(given.sizes, plan.strides.data()));
  if (plan.copy) {
    Buffer& scratch = scratch_[i];
    if (scratch.size() < bytes) scratch = Buffer(bytes);
    Buffer downloaded;
    const void* from = on_device ? DownloadInput(given, downloaded) : data;
    const std::int64_t* strides = plan_.GivenStrides(given);
    CopyStrided(given.sizes, element_size, from, strides, scratch.data(), plan.strides.data());
    data = scratch.data();
  }
  const bool on_host = !on_device || plan.copy || plan.numel == 0;
  if (graph != nullptr && (on_host || !spec_.inputs[i].mutated)) {
    void* memory = graph->Input(i, bytes);
    queue_->Copy(memory, data, bytes, on_host ? CopyKind::kUpload : CopyKind::kOnDevice);
    data = memory;
  } else if (queue_ != nullptr && on_host) {
    data = queue_->Upload(i, data, bytes);
  }
  auto handle = shim_.BorrowMemory(data, given.dtype, given.sizes, plan.strides);
  if (!handle.ok()) return std::move(handle).error();
  inputs_.push_back(*std::move(handle));
  const auto* begin = static_cast<const std::byte*>(data);
  taken_.push_back({begin, begin + bytes});
  return std::nullopt;
}

std::optional<Error> Runner::Execute(int threads) {
  raw_.clear();
  raw_.reserve(inputs_.size() + spec_.outputs.size());
  for (OwnedHandle& input : inputs_) raw_.push_back(input.release());
  const std::size_t num_inputs = raw_.size();
  raw_.resize(num_inputs + spec_.outputs.size(), nullptr);
  outputs_.reserve(spec_.outputs.size());
  const NoGradGuard no_grad(shim_);
  const RunThreads run_threads(threads);
  auto error = Guarded(spec_, shim_, [&] {
    program_.run(instance_, raw_.data(), raw_.data() + num_inputs,
                 queue_ == nullptr ? nullptr : queue_->stream());
  });
  raw_.erase(raw_.begin(), raw_.begin() + static_cast<std::ptrdiff_t>(num_inputs));
  outputs_.clear();
  if (error) return error;
  // A program that returns one tensor twice returns its handle twice, but only one reference.
  for (auto at = raw_.begin(); at != raw_.end(); ++at) {
    const bool again = std::find(raw_.begin(), at, *at) != at;
    outputs_.push_back(shim_.Own(again ? nullptr : *at));
  }
  return std::nullopt;
}

Result<Tensor> Runner::TakeOutput(std::size_t i, bool on_device) {
  const OutputSpec& expected = spec_.outputs[i];
  if (raw_[i] == nullptr) {
    return Error(ErrorCode::kInternal,
                 StrCat(spec_.name, ": the program made no output \"", expected.name, "\""));
  }
  // The tensor is alive even if another output has taken its only reference: outputs live until
  // Run() returns.
  const auto info = shim_.Inspect(raw_[i]);
  if (!info.ok()) return info.error();
  if (info->dtype != ShimDType(expected.dtype) || info->sizes.size() != expected.sizes.size()) {
    return Error(ErrorCode::kInternal,
                 StrCat(spec_.name, ": output \"", expected.name, "\" has dtype number ",
                        info->dtype, " and rank ", info->sizes.size(), ", its tables say ",
                        expected.dtype, " and ", expected.sizes.size()));
  }
  if (info->on_device && !on_device) return CopyOutput(*info, expected.dtype, false);
  std::vector<std::int64_t> strides(info->sizes.size());
  ContiguousStrides(info->sizes, strides.data());
  const bool contiguous = SameLayout(info->sizes, strides.data(), info->strides);
  const std::size_t element_size = SizeOf(expected.dtype);
  const std::size_t bytes =
      element_size * static_cast<std::size_t>(StorageElements(info->sizes, strides.data()));
  const auto* begin = static_cast<const std::byte*>(info->data);
  const Range range = {begin, begin + bytes};
  if (contiguous && outputs_[i] != nullptr && !IsTaken(range)) {
    taken_.push_back(range);
    return shim_.Adopt(std::move(outputs_[i]), *info, expected.dtype);
  }
  if (info->on_device) return CopyOutput(*info, expected.dtype, true);
  Buffer copy(bytes);
  CopyStrided(info->sizes, element_size, info->data, info->strides, copy.data(), strides.data());
  void* data = copy.data();
  return Tensor::Adopt(data, expected.dtype, {info->sizes.begin(), info->sizes.end()},
                       copy.release(), &Buffer::Free);
}

bool Runner::IsTaken(const Range& range) const {
  const auto overlaps = [&range](const Range& other) {
    return std::less<>()(range.begin, other.end) && std::less<>()(other.begin, range.end);
  };
  return std::ranges::any_of(taken_, overlaps) || set_->Contains(range.begin) ||
         (state_id_ != 0 && state_->Contains(range.begin));
}

}  // namespace aoti::internal
