#include "tools/ptx_emulator/exec/memory_map.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>

namespace ptx_emulator {

uint64_t MemoryMap::Allocate(uint64_t bytes, Allocation::Kind kind, int device) {
  Allocation allocation;
  allocation.base = next_;
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.device = device;
  allocation.storage = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  allocation.data = allocation.storage.get();
  std::memset(allocation.data, 0xFF, bytes);
  next_ = (next_ + bytes + kAlignment - 1) / kAlignment * kAlignment + kGap;
  live_bytes_ += bytes;
  uint64_t base = allocation.base;
  allocations_[base] = std::move(allocation);
  return base;
}

void MemoryMap::Register(void* data, uint64_t bytes) {
  Allocation allocation;
  allocation.base = reinterpret_cast<uint64_t>(data);
  allocation.bytes = bytes;
  allocation.data = static_cast<uint8_t*>(data);
  allocation.kind = Allocation::Kind::kHost;
  allocations_[allocation.base] = std::move(allocation);
}

bool MemoryMap::Free(uint64_t base) {
  auto found = allocations_.find(base);
  if (found == allocations_.end() || !found->second.live) return false;
  Allocation& allocation = found->second;
  if (allocation.kind == Allocation::Kind::kHost) {
    allocations_.erase(found);
    return true;
  }
  live_bytes_ -= allocation.bytes;
  allocation.live = false;
  allocation.storage.reset();
  allocation.data = nullptr;
  // Freed allocations are kept for the messages; the oldest are forgotten.
  if (++freed_ > kMostFreed) {
    auto oldest = std::find_if(allocations_.begin(), allocations_.end(),
                               [](const auto& entry) { return !entry.second.live; });
    allocations_.erase(oldest);
    --freed_;
  }
  return true;
}

Allocation* MemoryMap::Find(uint64_t address, uint64_t size) {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  Allocation& allocation = std::prev(after)->second;
  return allocation.live && allocation.Contains(address, size) ? &allocation : nullptr;
}

Allocation* MemoryMap::FindBase(uint64_t base) {
  auto found = allocations_.find(base);
  return found == allocations_.end() || !found->second.live ? nullptr : &found->second;
}

std::string MemoryMap::Describe(uint64_t address) const {
  std::ostringstream text;
  text << std::hex;
  auto after = allocations_.upper_bound(address);
  const Allocation* best = nullptr;
  uint64_t distance = ~0ull;
  auto consider = [&](const Allocation& allocation) {
    uint64_t end = allocation.base + allocation.bytes;
    uint64_t away = address < allocation.base ? allocation.base - address
                    : address < end           ? 0
                                              : address - end;
    if (best == nullptr || away < distance) {
      best = &allocation;
      distance = away;
    }
  };
  if (after != allocations_.begin()) consider(std::prev(after)->second);
  if (after != allocations_.end()) consider(after->second);
  if (best == nullptr) return "there is no allocation";
  uint64_t end = best->base + best->bytes;
  if (address < best->base) {
    text << std::dec << distance << " bytes before";
  } else if (address >= end) {
    text << std::dec << distance << " bytes after the end of";
  } else {
    text << "at byte " << std::dec << address - best->base << " of";
  }
  text << " the " << (best->live ? "" : "freed ")
       << (best->kind == Allocation::Kind::kHost ? "host memory" : "allocation") << " of "
       << best->bytes << " bytes at 0x" << std::hex << best->base;
  return text.str();
}

}  // namespace ptx_emulator
