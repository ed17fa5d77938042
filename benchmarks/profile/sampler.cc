#include "benchmarks/profile/sampler.h"

#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

namespace aoti::benchmark {
namespace {

// Not a whole number of milliseconds, so that samples don't keep step with what is sampled.
constexpr long kPeriod = 1'003'000;  // nanoseconds
constexpr std::size_t kMost = std::size_t{1} << 22;

// What the signal handler writes to.
std::uintptr_t* samples = nullptr;
std::atomic<std::size_t> count{0};

void OnTimer(int, siginfo_t* info, void* context) {
  const auto* interrupted = static_cast<const ucontext_t*>(context);
  const auto at = static_cast<std::uintptr_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
  // A thread without a CPU gets one signal for all the times that it missed.
  for (int i = 0; i <= info->si_overrun; ++i) {
    const std::size_t next = count.fetch_add(1, std::memory_order_relaxed);
    if (next < kMost) samples[next] = at;
  }
}

[[noreturn]] void Fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::vector<pid_t> Threads() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  if (folder == nullptr) Fail("/proc/self/task");
  std::vector<pid_t> threads;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') threads.push_back(std::atoi(entry->d_name));
  }
  return threads;
}

// Signals one thread again and again.
class Timer {
 public:
  explicit Timer(pid_t thread) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = thread;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) Fail("timer_create");
    const itimerspec period{.it_interval = {0, kPeriod}, .it_value = {0, kPeriod}};
    if (timer_settime(timer_, 0, &period, nullptr) != 0) Fail("timer_settime");
  }
  ~Timer() { timer_delete(timer_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  timer_t timer_{};
};

}  // namespace

std::vector<std::uintptr_t> Sample(const std::function<void()>& body) {
  std::vector<std::uintptr_t> found(kMost);
  samples = found.data();
  count = 0;
  // The handler stays: a last signal may come after the timers are gone.
  struct sigaction action{};
  action.sa_sigaction = OnTimer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(SIGPROF, &action, nullptr) != 0) Fail("sigaction");
  {
    std::vector<std::unique_ptr<Timer>> timers;
    for (const pid_t thread : Threads()) timers.push_back(std::make_unique<Timer>(thread));
    body();
  }
  const std::size_t taken = std::min(count.exchange(kMost), kMost);
  found.resize(taken);
  return found;
}

}  // namespace aoti::benchmark
