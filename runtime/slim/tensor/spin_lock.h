// A lock that is held for a few instructions only, so that waiting costs less than sleeping.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_SPIN_LOCK_H_
#define AOTI_RUNTIME_SLIM_TENSOR_SPIN_LOCK_H_

#include <atomic>
#include <thread>

namespace aoti::slim {

class SpinLock {
 public:
  void lock() noexcept {
    while (held_.test_and_set(std::memory_order_acquire)) {
      // If it takes this long, the thread that holds it has probably lost its CPU.
      constexpr int kTries = 1000;
      for (int i = 0; held_.test(std::memory_order_relaxed); ++i) {
        if (i >= kTries) std::this_thread::yield();
      }
    }
  }
  void unlock() noexcept { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_SPIN_LOCK_H_
