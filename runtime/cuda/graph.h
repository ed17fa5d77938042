// A CUDA graph of a call.

#ifndef AOTI_RUNTIME_CUDA_GRAPH_H_
#define AOTI_RUNTIME_CUDA_GRAPH_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/device.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/graph_memory.h"
#include "runtime/cuda/queue.h"

namespace aoti::cuda {

class Graph final : public internal::DeviceGraph {
 public:
  // stream: on which it is launched.
  Graph(Queue& queue, CuStream stream);
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void* Input(std::size_t number, std::size_t bytes) override;
  bool Record(const std::function<bool()>& work) override;
  void Replay() override;

 private:
  // Records into `graph`, which is null if the driver made none.
  bool Capture(const std::function<bool()>& work, CuGraph& graph);

  Queue& queue_;
  const CuStream stream_;
  const std::shared_ptr<GraphMemory> memory_;
  std::vector<Block*> inputs_;
  CuGraphExec executable_ = nullptr;
  bool reports_indices_ = false;
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_GRAPH_H_
