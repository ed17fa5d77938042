// Prints the rate at which this machine reads memory, in bytes per second: what no program that has
// to read its weights from there can exceed.
//
//   memory_rate THREADS SECONDS

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Vector = std::uint64_t __attribute__((vector_size(64)));

constexpr std::size_t kBytes = std::size_t{1} << 29;  // far beyond any cache
constexpr std::size_t kVectors = kBytes / sizeof(Vector);

// Several sums, so that no load waits for an addition.
template <std::size_t kSums>
[[gnu::always_inline]] inline std::uint64_t SumOf(const Vector* data, std::size_t count) {
  Vector sums[kSums] = {};
  for (std::size_t i = 0; i + kSums <= count; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += data[i + j];
  }
  std::uint64_t total = 0;
  for (const Vector& sum : sums) total += sum[0] ^ sum[7];
  return total;
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] std::uint64_t SumV4(const Vector* data, std::size_t count) {
  return SumOf<8>(data, count);
}
[[gnu::target("avx2")]] std::uint64_t SumV3(const Vector* data, std::size_t count) {
  return SumOf<4>(data, count);
}
#endif
std::uint64_t SumBaseline(const Vector* data, std::size_t count) { return SumOf<2>(data, count); }

auto* FastestSum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return &SumV4;
  if (__builtin_cpu_supports("avx2")) return &SumV3;
#endif
  return &SumBaseline;
}

// Seconds to read everything once, on that many threads.
double ReadAll(const Vector* data, int threads) {
  auto* const sum = FastestSum();
  std::atomic<std::uint64_t> total = 0;
  std::vector<std::thread> workers;
  const auto before = Clock::now();
  for (int t = 0; t < threads; ++t) {
    const std::size_t first = kVectors * t / threads;
    const std::size_t last = kVectors * (t + 1) / threads;
    workers.emplace_back([=, &total] { total += sum(data + first, last - first); });
  }
  for (std::thread& worker : workers) worker.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
  return total == 1 ? 0 : seconds;  // the sum is used: the loop stays
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const double duration = argc > 2 ? std::atof(argv[2]) : 1;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("memory_rate: mmap");
    return 1;
  }
  madvise(memory, kBytes, MADV_HUGEPAGE);
  std::memset(memory, 1, kBytes);

  double best = ReadAll(static_cast<const Vector*>(memory), threads);
  const auto end = Clock::now() + std::chrono::duration<double>(duration);
  while (Clock::now() < end) {
    best = std::min(best, ReadAll(static_cast<const Vector*>(memory), threads));
  }
  std::printf("%.0f\n", static_cast<double>(kBytes) / best);
  return 0;
}
