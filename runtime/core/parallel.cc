#include "runtime/core/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/core/float_settings.h"
#include "runtime/core/kernel_abi.h"

namespace aoti::internal {
namespace {

constexpr int kMostThreads = 256;

// How long a waiting thread spins before it sleeps, half a millisecond or more: the parts of a
// region end that far apart on a busy machine, and a region that wakes a thread takes 8 to 28
// microseconds longer.
constexpr int kSpins = 20000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Whether `ready` became true while this thread spun.
template <typename Ready>
bool Spin(const Ready& ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    Pause();
  }
  return ready();
}

int CountCpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
    return std::clamp(CPU_COUNT(&cpus), 1, kMostThreads);
  }
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

// The number of threads that the RunThreads of this thread allows; 0 without one.
thread_local int run_threads = 0;
// How many threads of the budget this thread's RunThreads hold.
thread_local int run_taken = 0;
thread_local bool in_region = false;

// One call of ParallelRegion, on the caller's stack.
class Region {
 public:
  Region(void (*body)(void*, int, int), void* context, int threads)
      : body_(body), context_(context), threads_(threads), pending_(threads) {}

  // Runs one thread's part. The caller's stack may be gone when the last part's Run returns.
  void Run(int thread) {
    const bool nested = in_region;
    in_region = true;
    settings_.Set();
    try {
      body_(context_, thread, threads_);
    } catch (...) {
      Keep(std::current_exception(), thread);
    }
    in_region = nested;
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    const std::lock_guard lock(mutex_);
    done_.store(true, std::memory_order_release);
    condition_.notify_one();
  }

  // Returns when all parts have, with the exception of one or null.
  std::exception_ptr Wait() {
    Spin([this] { return done_.load(std::memory_order_acquire); });
    // Taking the lock also waits until the last part has left Run().
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return done_.load(std::memory_order_relaxed); });
    return error_;
  }

 private:
  // Keeps the exception that a serial run would have thrown first.
  void Keep(std::exception_ptr error, int thread) {
    const std::lock_guard lock(mutex_);
    if (thread >= error_thread_) return;
    error_ = std::move(error);
    error_thread_ = thread;
  }

  void (*const body_)(void*, int, int);
  void* const context_;
  const int threads_;
  const FloatSettings settings_;  // the caller's
  std::atomic<int> pending_;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable condition_;
  std::exception_ptr error_;
  int error_thread_ = std::numeric_limits<int>::max();
};

// A thread of the pool, and the part of a region that it runs next.
class Worker {
 public:
  // For use by the owner of the idle list.
  Worker* next = nullptr;

  void Give(Region& region, int thread) {
    thread_ = thread;
    region_.store(&region, std::memory_order_release);
    {
      const std::lock_guard lock(mutex_);
    }
    condition_.notify_one();
  }

  // Takes the part back if the worker has not begun it; returns whether it did.
  bool TakeBack() { return region_.exchange(nullptr, std::memory_order_acq_rel) != nullptr; }

  [[noreturn]] void Loop() {
    for (;;) {
      const auto given = [this] { return region_.load(std::memory_order_relaxed) != nullptr; };
      if (!Spin(given)) {
        std::unique_lock lock(mutex_);
        condition_.wait(lock, given);
      }
      Region* region = region_.exchange(nullptr, std::memory_order_acq_rel);
      if (region != nullptr) region->Run(thread_);
    }
  }

 private:
  std::atomic<Region*> region_{nullptr};
  int thread_ = 0;
  std::mutex mutex_;
  std::condition_variable condition_;
};

class Pool {
 public:
  Pool(int cpus, int taken) : cpus_(cpus), free_(cpus - taken) {}

  int cpus() const { return cpus_.load(std::memory_order_relaxed); }
  void set_cpus(int cpus) {
    const std::lock_guard lock(mutex_);
    free_ += cpus - cpus_;
    cpus_ = cpus;
  }

  // Takes up to `wanted` threads from the budget of RunThreads; returns their number.
  int Take(int wanted) {
    const std::lock_guard lock(mutex_);
    const int taken = std::clamp(wanted, 1, std::max(free_, 1));
    free_ -= taken;
    return taken;
  }
  void GiveBack(int taken) {
    const std::lock_guard lock(mutex_);
    free_ += taken;
  }

  // Returns a list of up to `wanted` idle workers, and sets `wanted` to their number.
  Worker* TakeWorkers(int& wanted) {
    const std::lock_guard lock(mutex_);
    Worker* list = nullptr;
    int count = 0;
    for (; count < wanted; ++count) {
      if (idle_ == nullptr && !Start()) break;
      Worker* worker = idle_;
      idle_ = worker->next;
      worker->next = list;
      list = worker;
    }
    wanted = count;
    return list;
  }
  void GiveBackWorkers(Worker* list) {
    const std::lock_guard lock(mutex_);
    while (list != nullptr) {
      Worker* worker = list;
      list = worker->next;
      worker->next = idle_;
      idle_ = worker;
    }
  }

 private:
  // Starts one more worker if the limit allows it; returns whether it did.
  bool Start() {
    if (started_ >= cpus_ - 1) return false;
    Worker* worker = &workers_[static_cast<std::size_t>(started_)];
    try {
      std::thread([worker] { worker->Loop(); }).detach();
    } catch (const std::system_error&) {
      return false;  // the operating system refuses more threads
    }
    ++started_;
    worker->next = idle_;
    idle_ = worker;
    return true;
  }

  std::atomic<int> cpus_;
  std::mutex mutex_;
  int free_;  // less than 0 if more callers run than there are CPUs
  int started_ = 0;
  Worker* idle_ = nullptr;
  std::array<Worker, kMostThreads - 1> workers_;
};

// Never destroyed: its threads run until the process ends.
alignas(Pool) std::byte pool_memory[sizeof(Pool)];

Pool& ThePool() {
  static Pool* const pool = [] {
    // The child of a fork() has none of the threads, and its copies of mutexes may be locked: it
    // gets a new pool.
    pthread_atfork(nullptr, nullptr, [] {
      const int cpus = reinterpret_cast<Pool*>(pool_memory)->cpus();
      new (pool_memory) Pool(cpus, run_taken);
    });
    return new (pool_memory) Pool(CountCpus(), 0);
  }();
  return *pool;
}

}  // namespace

int MaxThreads() {
  if (in_region) return 1;
  return run_threads > 0 ? run_threads : ThePool().cpus();
}

void ParallelRegion(int wanted, void (*body)(void* context, int thread, int threads),
                    void* context) {
  int helpers = std::min(wanted, MaxThreads()) - 1;
  if (helpers <= 0) return body(context, 0, 1);
  Worker* const workers = ThePool().TakeWorkers(helpers);
  if (helpers == 0) return body(context, 0, 1);
  Region region(body, context, helpers + 1);
  int thread = 0;
  for (Worker* worker = workers; worker != nullptr; worker = worker->next) {
    worker->Give(region, ++thread);
  }
  region.Run(0);
  // If the CPUs are busy, the worker may not have begun its part.
  thread = 0;
  for (Worker* worker = workers; worker != nullptr; worker = worker->next) {
    ++thread;
    if (worker->TakeBack()) region.Run(thread);
  }
  const std::exception_ptr error = region.Wait();
  ThePool().GiveBackWorkers(workers);
  if (error != nullptr) std::rethrow_exception(error);
}

RunThreads::RunThreads(int wanted) : taken_(0), before_(run_threads) {
  if (before_ > 0) {  // within a run: no threads beyond those of the run
    if (wanted > 0) run_threads = std::min(wanted, before_);
    return;
  }
  taken_ = ThePool().Take(wanted > 0 ? wanted : ThePool().cpus());
  run_taken = taken_;
  run_threads = taken_;
}

RunThreads::~RunThreads() {
  run_threads = before_;
  if (taken_ == 0) return;
  run_taken = 0;
  ThePool().GiveBack(taken_);
}

void SetCpusForTesting(int cpus) { ThePool().set_cpus(std::clamp(cpus, 1, kMostThreads)); }

}  // namespace aoti::internal

int aoti_kernel_threads() { return aoti::internal::MaxThreads(); }

void aoti_kernel_parallel(int wanted, void (*body)(void*, int, int), void* context) {
  aoti::internal::ParallelRegion(wanted, body, context);
}
