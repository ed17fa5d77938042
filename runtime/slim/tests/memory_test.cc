#include "runtime/slim/tensor/memory.h"

#include <set>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace aoti::slim

int main() { return aoti::testing::RunAllTests(); }
