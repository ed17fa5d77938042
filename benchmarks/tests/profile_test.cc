// Samples a thread that works in a function whose name says what kind of step it is.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/profile/kinds.h"
#include "benchmarks/profile/sampler.h"
#include "benchmarks/profile/symbols.h"
#include "runtime/tests/check.h"

// Like a kernel that Inductor wrote.
extern "C" [[gnu::noinline]] std::uint64_t cpp_fused_for_test(std::uint64_t steps) {
  std::uint64_t sum = 1;
  for (std::uint64_t i = 0; i < steps; ++i) {
    sum = sum * 3 + i;
    asm volatile("" : "+r"(sum));
  }
  return sum;
}

namespace aoti::benchmark {
namespace {

TEST(SamplesAreWhereTheTimeGoes) {
  std::uint64_t sum = 0;
  const std::vector<std::uintptr_t> samples = Sample([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) sum += cpp_fused_for_test(1'000'000);
  });
  CHECK_TRUE(sum != 0);
  const Symbols symbols = Symbols::OfThisProgram();
  std::size_t in_loops = 0;
  for (const std::uintptr_t sample : samples) {
    if (KindOf(symbols.At(sample)) == Kind::kLoops) ++in_loops;
  }
  CHECK_TRUE(samples.size() > 20);
  CHECK_TRUE(in_loops * 10 > samples.size() * 9);
}

TEST(NamesOfFunctionsSayTheirKind) {
  const auto is = [](const char* name, Kind kind) { return KindOf(name) == kind; };
  CHECK_TRUE(
      is("_ZN4aoti4slim6x86_v412_GLOBAL__N_14TileILi1ELi8EfEEvRKNS0_8GemmTileEi", Kind::kProducts));
  CHECK_TRUE(is("_ZN4aoti4slim6x86_v412_GLOBAL__N_114VnniDotsOfInt8ILi3EEEvRKNS0_8Int8DotsE",
                Kind::kProducts));
  CHECK_TRUE(is("_ZN4aoti4slim6x86_v412_GLOBAL__N_14TileILi3EEEvRKNS0_14AttentionBlockElPKfPf",
                Kind::kAttention));
  CHECK_TRUE(is("_ZN4aoti8internal14ParallelRegionEiPFvPviiES1_", Kind::kWaiting));
  CHECK_TRUE(is("m_llm_block_0_cpp_fused_add_mean_mul_pow_rsqrt_0", Kind::kLoops));
  CHECK_TRUE(is("_ZN4aoti4slim8AllocateEm", Kind::kOther));
  CHECK_TRUE(is("", Kind::kOther));
}

}  // namespace
}  // namespace aoti::benchmark

int main() { return aoti::testing::RunAllTests(); }
