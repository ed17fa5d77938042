#include "runtime/cuda/graph.h"

#include <mutex>

#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"

namespace aoti::cuda {

Graph::Graph(Queue& queue, CuStream stream)
    : queue_(queue),
      stream_(stream),
      memory_(std::make_shared<GraphMemory>(queue.context(), stream)) {}

Graph::~Graph() {
  for (Block* block : inputs_) {
    if (block != nullptr) Context::Release(block);
  }
  if (executable_ == nullptr || IsForkedChild()) return;
  try {
    const Context::Current current(queue_.context());
    queue_.WaitForLeft();
    Driver().GraphExecDestroy(executable_);
  } catch (const DeviceError&) {
    // The device is broken, and its calls say so.
  }
}

void* Graph::Input(std::size_t number, std::size_t bytes) {
  if (inputs_.size() <= number) inputs_.resize(number + 1);
  if (inputs_[number] == nullptr) inputs_[number] = memory_->Allocate(bytes);
  return inputs_[number]->memory;
}

bool Graph::Capture(const std::function<bool()>& work, CuGraph& graph) {
  const std::lock_guard lock(queue_.context().recording());
  const CuStream stream = queue_.BeginRecording(*memory_);
  const CuStream recorded = queue_.cu_stream();
  bool worked = false;
  CuResult result = Driver().StreamBeginCapture(recorded, kCaptureRelaxed);
  if (result == kSuccess) {
    try {
      worked = work();
    } catch (const DeviceError&) {
      worked = false;
    }
    result = Driver().StreamEndCapture(recorded, &graph);
  }
  reports_indices_ = queue_.EndRecording(stream);
  return worked && result == kSuccess;
}

bool Graph::Record(const std::function<bool()>& work) {
  CuGraph graph = nullptr;
  const bool captured = Capture(work, graph);
  CuResult result = kSuccess;
  if (captured) result = Driver().GraphInstantiate(&executable_, graph, 0);
  if (graph != nullptr) Driver().GraphDestroy(graph);
  if (result != kSuccess) executable_ = nullptr;
  return captured && result == kSuccess;
}

void Graph::Replay() {
  Check(Driver().GraphLaunch(executable_, stream_),
        [&] { return StrCat("launching a graph on ", queue_.context().Text()); });
  queue_.NoteReplay(reports_indices_);
}

}  // namespace aoti::cuda
