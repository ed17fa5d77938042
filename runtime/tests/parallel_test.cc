#include "runtime/core/parallel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/float_settings.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/tests/check.h"

#if defined(__SANITIZE_THREAD__)
#define AOTI_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AOTI_THREAD_SANITIZER 1
#endif
#endif

namespace aoti::internal {
namespace {

constexpr int kCpus = 4;

TEST(EveryPartRunsOnce) {
  for (const int wanted : {0, 1, 2, 3, kCpus, 100}) {
    std::vector<std::atomic<int>> runs(kCpus);
    std::atomic<int> threads = 0;
    Parallel(wanted, [&](int thread, int count) {
      runs[static_cast<std::size_t>(thread)] += 1;
      threads = count;
    });
    CHECK_TRUE(threads >= 1 && threads <= std::max(1, std::min(wanted, kCpus)));
    for (int i = 0; i < kCpus; ++i) CHECK_EQ(runs[static_cast<std::size_t>(i)].load(), i < threads);
  }
}

TEST(RangesCoverAll) {
  for (const std::int64_t size : {0, 1, 2, 7, 1000}) {
    for (const std::int64_t grain : {0, 1, 3, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(size));
      ParallelFor(10, 10 + size, grain, [&](std::int64_t first, std::int64_t last) {
        CHECK_TRUE(first < last);
        for (std::int64_t i = first; i < last; ++i) seen[static_cast<std::size_t>(i - 10)] += 1;
      });
      for (const std::atomic<int>& count : seen) CHECK_EQ(count.load(), 1);
    }
  }
}

TEST(WorkersAreUsed) {
  // Every part waits for the others, so the region returns only if there are as many threads as
  // parts.
  std::atomic<int> arrived = 0;
  std::atomic<bool> together = false;
  for (int attempt = 0; attempt < 50 && !together; ++attempt) {
    arrived = 0;
    Parallel(kCpus, [&](int, int threads) {
      ++arrived;
      for (int i = 0; i < 2000 && arrived < threads; ++i) usleep(100);
      if (arrived == kCpus) together = true;
    });
  }
  CHECK_TRUE(together);
}

TEST(NestedRegionsAreSerial) {
  std::atomic<int> inner = 0;
  std::atomic<int> most = 0;
  Parallel(kCpus, [&](int, int) {
    if (MaxThreads() > most) most = MaxThreads();
    Parallel(kCpus, [&](int thread, int threads) {
      CHECK_EQ(thread, 0);
      CHECK_EQ(threads, 1);
      ++inner;
    });
  });
  CHECK_EQ(most.load(), 1);
  CHECK_EQ(inner.load(), kCpus);
  CHECK_EQ(MaxThreads(), kCpus);
}

std::string Thrown(int wanted, int first_bad) {
  try {
    Parallel(wanted, [&](int thread, int) {
      if (thread >= first_bad) throw std::runtime_error("part " + std::to_string(thread));
    });
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ExceptionsArriveAtTheCaller) {
  for (int i = 0; i < 200; ++i) {
    CHECK_EQ(Thrown(kCpus, kCpus), "nothing");
    CHECK_EQ(Thrown(kCpus, 0), "part 0");
    CHECK_EQ(Thrown(kCpus, 2), "part 2");
    CHECK_EQ(Thrown(1, 0), "part 0");
  }
  CHECK_EQ(MaxThreads(), kCpus);
}

#if defined(__x86_64__)
// What the calling thread makes of a subnormal number and of a third of 1.
std::string Computed() {
  volatile float tiny = 0x1p-140F, one = 1, three = 3;
  const volatile float larger = tiny * 0x1p100F, third = one / three;
  return std::string(larger == 0 ? "zero, " : "a number, ") + (third * 3 > 1 ? "up" : "nearest");
}

// What the parts of a region compute. Waits for parts that other threads run.
std::string ComputedInParts() {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> elsewhere = false;
  std::string of_all;
  for (int attempt = 0; attempt < 50 && !elsewhere; ++attempt) {
    std::vector<std::string> computed(kCpus);
    std::atomic<int> arrived = 0;
    Parallel(kCpus, [&](int thread, int threads) {
      computed[static_cast<std::size_t>(thread)] = Computed();
      if (std::this_thread::get_id() != caller) elsewhere = true;
      ++arrived;
      for (int i = 0; i < 2000 && arrived < threads; ++i) usleep(100);
    });
    of_all = computed[0];
    for (const std::string& one : computed) {
      if (one != of_all) return of_all + " and " + one;
    }
  }
  return elsewhere ? of_all : "by the caller alone";
}

TEST(PartsComputeAsTheCallerDoes) {
  CHECK_EQ(ComputedInParts(), "a number, nearest");
  {
    const WithoutSubnormals scope;
    CHECK_EQ(Computed(), "zero, nearest");
    CHECK_EQ(ComputedInParts(), "zero, nearest");
    const WithoutSubnormals again;
  }
  CHECK_EQ(Computed(), "a number, nearest");
  CHECK_EQ(ComputedInParts(), "a number, nearest");
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | _MM_ROUND_UP);
  CHECK_EQ(ComputedInParts(), "a number, up");
  {
    const WithoutSubnormals scope;
    CHECK_EQ(ComputedInParts(), "zero, up");
  }
  CHECK_EQ(Computed(), "a number, up");
  _mm_setcsr(before);
}
#endif

TEST(RunsShareTheCpus) {
  CHECK_EQ(MaxThreads(), kCpus);
  {
    const RunThreads three(3);
    CHECK_EQ(MaxThreads(), 3);
    std::thread([] {
      const RunThreads all(0);  // the rest of the budget
      CHECK_EQ(MaxThreads(), 1);
      std::thread([] {
        const RunThreads none(2);  // the budget is used up
        CHECK_EQ(MaxThreads(), 1);
      }).join();
    }).join();
    {
      const RunThreads inner(2);
      CHECK_EQ(MaxThreads(), 2);
      const RunThreads more(100);
      CHECK_EQ(MaxThreads(), 2);
    }
    CHECK_EQ(MaxThreads(), 3);
  }
  const RunThreads all(0);
  CHECK_EQ(MaxThreads(), kCpus);
}

TEST(ManyCallersAtOnce) {
  std::atomic<std::int64_t> sum = 0;
  std::atomic<int> errors = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 300; ++i) {
        const RunThreads run(caller % 3);
        try {
          ParallelFor(0, 100, 1, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t k = first; k < last; ++k) sum += k;
            if (i % 10 == 0 && last == 100) throw std::runtime_error("last");
          });
        } catch (const std::runtime_error&) {
          ++errors;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_EQ(sum.load(), 6 * 300 * 4950);
  CHECK_EQ(errors.load(), 6 * 30);
}

TEST(KernelsUseTheSameThreads) {
  const RunThreads two(2);
  CHECK_EQ(aoti_kernel_threads(), 2);
  std::atomic<int> parts = 0;
  aoti_kernel_parallel(
      100, [](void* context, int, int) { ++*static_cast<std::atomic<int>*>(context); }, &parts);
  CHECK_EQ(parts.load(), 2);
}

#ifndef AOTI_THREAD_SANITIZER  // it does not support threads in a forked child
TEST(AForkedChildHasItsOwnThreads) {
  const RunThreads run(3);
  Parallel(kCpus, [](int, int) {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> parts = 0;
    Parallel(kCpus, [&](int, int) { ++parts; });
    int rest = 0;
    std::thread([&] {
      const RunThreads all(0);
      rest = MaxThreads();
    }).join();
    _exit(parts == 3 && rest == kCpus - 3 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace aoti::internal

int main() {
  aoti::internal::SetCpusForTesting(aoti::internal::kCpus);
  return aoti::testing::RunAllTests();
}
