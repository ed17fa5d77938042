// The C library's clocks for one process, decades from now.

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {
constexpr time_t kSeconds = 12000L * 24 * 60 * 60 + 12345;

// The kernel's own answer: the C library's functions are replaced below.
timespec Later() {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  now.tv_sec += kSeconds;
  return now;
}
}  // namespace

extern "C" {
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    *time = Later();
    return 0;
  }
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

int gettimeofday(timeval* time, void*) noexcept {
  const timespec later = Later();
  *time = {later.tv_sec, later.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* time) noexcept {
  const time_t seconds = Later().tv_sec;
  if (time != nullptr) *time = seconds;
  return seconds;
}
}
