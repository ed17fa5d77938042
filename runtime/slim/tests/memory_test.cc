#include "runtime/slim/tensor/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/slim/tensor/arena.h"
#include "runtime/tests/check.h"

namespace aoti::slim {
namespace {

constexpr std::size_t kBytes = 5000;
constexpr int kBlocks = 20;  // more than a size class keeps in its array

// Takes so many blocks, and returns them.
std::set<void*> Use() {
  std::vector<void*> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(Allocate(kBytes));
  for (void* block : blocks) Release(block, kBytes);
  return {blocks.begin(), blocks.end()};
}

TEST(TheNextCallGetsTheSameBlocks) {
  TrimPool();
  const std::set<void*> first = Use();
  CHECK_EQ(first.size(), std::size_t{kBlocks});
  CHECK_TRUE(Use() == first);
}

// Otherwise a thread whose blocks another one releases would ask the system for more and more.
TEST(AThreadGetsWhatAnotherOneReleased) {
  TrimPool();
  std::set<void*> first;
  std::thread([&] { first = Use(); }).join();
  CHECK_TRUE(Use() == first);
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Memory of the process that is not of files, in bytes.
std::size_t ResidentBytes() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::size_t of_files = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> of_files;
  return (resident - of_files) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(ALargeBlockTakesThePlaceOfSmallerNeighbours) {
  TrimPool();
  void* blocks[3] = {Allocate(kMiB), Allocate(2 * kMiB), Allocate(kMiB / 2)};
  Release(blocks[1], 2 * kMiB);
  Release(blocks[0], kMiB);
  void* both = Allocate(3 * kMiB);
  CHECK_TRUE(both == blocks[0]);
  Release(both, 3 * kMiB);
  Release(blocks[2], kMiB / 2);
}

TEST(ALargeBlockIsSplit) {
  TrimPool();
  void* whole = Allocate(3 * kMiB);
  void* behind = Allocate(kMiB);
  Release(whole, 3 * kMiB);
  void* first = Allocate(kMiB);
  void* second = Allocate(2 * kMiB);
  CHECK_TRUE(first == whole);
  CHECK_TRUE(second == static_cast<char*>(whole) + kMiB);
  Release(second, 2 * kMiB);
  Release(first, kMiB);
  Release(behind, kMiB);
}

TEST(ALargeBlockTakesTheSmallestRangeWithRoom) {
  TrimPool();
  void* large = Allocate(4 * kMiB);
  void* between = Allocate(kMiB);
  void* small = Allocate(2 * kMiB);
  void* behind = Allocate(kMiB);
  Release(large, 4 * kMiB);
  Release(small, 2 * kMiB);
  void* found = Allocate(kMiB);
  CHECK_TRUE(found == small);
  Release(found, kMiB);
  Release(between, kMiB);
  Release(behind, kMiB);
}

// More than a region, of which the next ones are as large as all before.
TEST(BlocksOfAllSizesAreAlignedAndApart) {
  TrimPool();
  struct Block {
    std::uint8_t* data;
    std::size_t bytes;
    std::uint8_t mark;
  };
  const auto run = [](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<Block> blocks;
    std::size_t held = 0;
    int wrong = 0;
    const auto release = [&](std::size_t i) {
      const Block block = blocks[i];
      // The first and the last byte, and one between them.
      for (const std::size_t at : {std::size_t{0}, block.bytes / 2, block.bytes - 1}) {
        wrong += block.data[at] != block.mark;
      }
      Release(block.data, block.bytes);
      held -= block.bytes;
      blocks[i] = blocks.back();
      blocks.pop_back();
    };
    for (int step = 0; step < 20000; ++step) {
      const std::size_t bytes = std::size_t{1} + random() % (std::size_t{1} << (random() % 24));
      if (held + bytes < 240 * kMiB) {
        auto* data = static_cast<std::uint8_t*>(Allocate(bytes));
        wrong += reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0;
        const auto mark = static_cast<std::uint8_t>(random());
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) data[at] = mark;
        blocks.push_back({data, bytes, mark});
        held += bytes;
      }
      if (random() % 2 == 0 && !blocks.empty()) release(random() % blocks.size());
      while (held > 200 * kMiB) release(random() % blocks.size());
    }
    while (!blocks.empty()) release(blocks.size() - 1);
    return wrong;
  };
  int wrong[3] = {};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&, i] { wrong[i] = run(i); });
  for (std::thread& thread : threads) thread.join();
  for (const int each : wrong) CHECK_EQ(each, 0);
}

TEST(FreeMemoryGoesBackToTheSystem) {
  TrimPool();
  const std::size_t before = ResidentBytes();
  constexpr std::size_t kMany = 100 * kMiB;
  auto* block = static_cast<char*>(Allocate(kMany));
  std::fill(block, block + kMany, '1');
  CHECK_TRUE(ResidentBytes() > before + kMany / 2);
  Release(block, kMany);
  TrimPool();
  CHECK_TRUE(ResidentBytes() < before + kMany / 4);
}

TEST(MemoryThatTheSystemLacksIsRefused) {
  bool refused = false;
  try {
    Allocate(SIZE_MAX);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK_TRUE(refused);

  Arena arena;
  CHECK_TRUE(arena.Take(std::size_t{1} << 50) == nullptr);
  void* block = arena.Take(kMiB);
  CHECK_TRUE(block != nullptr);
  arena.Put(block, kMiB);
  arena.Trim();
}

}  // namespace
}  // namespace aoti::slim

int main() { return aoti::testing::RunAllTests(); }
