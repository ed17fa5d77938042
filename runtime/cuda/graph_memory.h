// Memory in which the kernels of a graph work. It stays the graph's as long as that exists, because
// each launch uses the same addresses.

#ifndef AOTI_RUNTIME_CUDA_GRAPH_MEMORY_H_
#define AOTI_RUNTIME_CUDA_GRAPH_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/memory_pool.h"

namespace aoti::cuda {

class Context;

// Used by one thread at a time. Its last owner is the graph or a tensor.
class GraphMemory final : public std::enable_shared_from_this<GraphMemory> {
 public:
  GraphMemory(Context& context, CuStream stream) : context_(context), stream_(stream) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // Throws DeviceError. The context is current.
  Block* Allocate(std::size_t bytes);
  // Keeps a block for later kernels of the graph.
  void Take(Block* block) noexcept;

 private:
  Context& context_;
  const CuStream stream_;
  std::size_t blocks_ = 0;
  std::vector<Block*> free_;
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_GRAPH_MEMORY_H_
