#include "runtime/cuda/graph_memory.h"

#include <algorithm>

#include "runtime/cuda/context.h"

namespace aoti::cuda {

GraphMemory::~GraphMemory() {
  for (Block* block : free_) Context::Release(block);
}

Block* GraphMemory::Allocate(std::size_t bytes) {
  // The smallest one that is not much too large.
  auto best = free_.end();
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if ((*at)->bytes < bytes || (*at)->bytes > 2 * bytes + 512) continue;
    if (best == free_.end() || (*at)->bytes < (*best)->bytes) best = at;
  }
  Block* block = nullptr;
  if (best != free_.end()) {
    block = *best;
    free_.erase(best);
  } else {
    free_.reserve(blocks_ + 1);  // so that Take() has nothing to allocate
    block = context_.AllocateBlock(bytes, stream_);
    ++blocks_;
  }
  block->graph = shared_from_this();
  return block;
}

void GraphMemory::Take(Block* block) noexcept { free_.push_back(block); }

}  // namespace aoti::cuda
