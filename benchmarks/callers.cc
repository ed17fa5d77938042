#include "benchmarks/callers.h"

#include <sys/resource.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <thread>

#include "benchmarks/allocations.h"

namespace aoti::benchmark {
namespace {

using Clock = std::chrono::steady_clock;

struct Usage {
  long faults;
  long waits;
  long allocations;
};

Usage UsageOfProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_minflt, usage.ru_nvcsw, CountedAllocations ? CountedAllocations() : 0};
}

struct Record {
  std::vector<double> nanoseconds;
  Clock::time_point end;
  std::exception_ptr error;
};

}  // namespace

Throughput MeasureThroughput(const std::vector<std::function<void()>>& callers, double seconds) {
  std::vector<Record> records(callers.size());
  Usage before{};
  Clock::time_point begin;
  std::barrier start(static_cast<std::ptrdiff_t>(callers.size()), [&]() noexcept {
    before = UsageOfProcess();
    begin = Clock::now();
  });
  const auto run = [&](std::size_t i) {
    Record& record = records[i];
    record.nanoseconds.reserve(1 << 20);
    try {
      callers[i]();
    } catch (...) {
      record.error = std::current_exception();
    }
    start.arrive_and_wait();
    const auto deadline = begin + std::chrono::duration<double>(seconds);
    auto now = begin;
    try {
      while (!record.error && (now < deadline || record.nanoseconds.empty())) {
        callers[i]();
        const auto after = Clock::now();
        record.nanoseconds.push_back(std::chrono::duration<double, std::nano>(after - now).count());
        now = after;
      }
    } catch (...) {
      record.error = std::current_exception();
    }
    record.end = now;
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  const Usage after = UsageOfProcess();

  std::vector<double> all;
  Clock::time_point end = begin;
  for (const Record& record : records) {
    if (record.error) std::rethrow_exception(record.error);
    all.insert(all.end(), record.nanoseconds.begin(), record.nanoseconds.end());
    end = std::max(end, record.end);
  }
  std::sort(all.begin(), all.end());
  const auto count = static_cast<double>(all.size());
  if (all.empty()) throw std::invalid_argument("there is no caller");
  return {.calls = static_cast<std::int64_t>(all.size()),
          .seconds = std::chrono::duration<double>(end - begin).count(),
          .median_ns = all[all.size() / 2],
          .p99_ns = all[std::min(all.size() - 1, all.size() * 99 / 100)],
          .faults = static_cast<double>(after.faults - before.faults) / count,
          .waits = static_cast<double>(after.waits - before.waits) / count,
          .allocations = CountedAllocations
                             ? static_cast<double>(after.allocations - before.allocations) / count
                             : -1.0};
}

}  // namespace aoti::benchmark
