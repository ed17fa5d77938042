#include "runtime/cuda/memory_pool.h"

#include <algorithm>
#include <bit>

#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"

namespace aoti::cuda {
namespace {

// Sizes are rounded up so that at most an eighth of a block is unused, and tensors of nearly the
// same size share blocks.
std::size_t Rounded(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes | 1) / 8, 512);
  return (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

CuResult MemoryPool::Allocate(std::size_t bytes, CuStream stream, Block*& block) {
  bytes = Rounded(bytes);
  const std::lock_guard lock(mutex_);
  List& list = lists_[{stream, bytes}];
  if (list.free.empty()) {
    list.free.reserve(list.blocks + 1);  // so that Release() has nothing to allocate
    auto made = std::make_unique<Block>();
    CuPointer memory = 0;
    CuResult result = Driver().MemAlloc(&memory, bytes);
    if (result == kErrorOutOfMemory) {
      // The free blocks of other sizes may be enough.
      TrimLocked(nullptr);
      result = Driver().MemAlloc(&memory, bytes);
    }
    if (result != kSuccess) return result;
    *made = {FromPointer(memory), bytes, stream, nullptr, nullptr};
    ++list.blocks;
    block = made.release();
    return kSuccess;
  }
  block = list.free.back().release();
  list.free.pop_back();
  return kSuccess;
}

void MemoryPool::Release(Block* block) noexcept {
  const std::lock_guard lock(mutex_);
  lists_.find({block->stream, block->bytes})->second.free.emplace_back(block);
}

void MemoryPool::Trim(CuStream stream) noexcept {
  const std::lock_guard lock(mutex_);
  TrimLocked(stream);
}

void MemoryPool::TrimLocked(CuStream stream) noexcept {
  for (auto& [key, list] : lists_) {
    if (stream != nullptr && key.first != stream) continue;
    for (const auto& block : list.free) {
      Driver().MemFree(ToPointer(block->memory));  // waits for the work that uses it
    }
    list.blocks -= list.free.size();
    list.free.clear();
  }
}

}  // namespace aoti::cuda
