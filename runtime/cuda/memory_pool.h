// Memory of one device for tensors. Blocks that are free are kept, so that calls after the first
// ones allocate nothing from the driver.

#ifndef AOTI_RUNTIME_CUDA_MEMORY_POOL_H_
#define AOTI_RUNTIME_CUDA_MEMORY_POOL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/driver_api.h"

namespace aoti::cuda {

class Context;
class GraphMemory;

// A block that is in use.
struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;  // may be more than were asked for
  CuStream stream = nullptr;
  std::shared_ptr<Context> context;    // keeps the pool alive; null for a free block
  std::shared_ptr<GraphMemory> graph;  // where it goes back to; null: to the pool
};

// The memory of a block belongs to a stream: a block that was released is only given to work that
// comes later on that stream, so that neither waits for the other. Thread safe.
class MemoryPool {
 public:
  // Returns the driver's error if there is no memory. The context is current.
  CuResult Allocate(std::size_t bytes, CuStream stream, Block*& block);
  // Takes back a block whose context was taken out of it.
  void Release(Block* block) noexcept;
  // Returns the free blocks of a stream to the driver; of all streams if it is null. The context is
  // current, and the stream has no work.
  void Trim(CuStream stream) noexcept;

 private:
  struct List {
    std::vector<std::unique_ptr<Block>> free;
    std::size_t blocks = 0;  // also those in use
  };
  using Key = std::pair<CuStream, std::size_t>;

  void TrimLocked(CuStream stream) noexcept;

  std::mutex mutex_;
  std::map<Key, List> lists_;
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_MEMORY_POOL_H_
