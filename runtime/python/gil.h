// The interpreter's lock, in a process that may end while a thread waits for it.
//
// Up to Python 3.13 a daemon thread that wants the lock while the interpreter shuts down is ended
// by pthread_exit(), wherever it is. That unwinds the C++ frames below it, whose destructors would
// use the interpreter without its lock, and ends the process where it meets a function that must
// not throw. Here such a thread sleeps until the process is gone, as it does since Python 3.14.

#ifndef AOTI_RUNTIME_PYTHON_GIL_H_
#define AOTI_RUNTIME_PYTHON_GIL_H_

#include <Python.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <utility>

namespace aoti::python {

// Stops the unwinding of a thread that pthread_exit() ends. Nothing below it may have destructors.
class Anchor {
 public:
  Anchor() = default;
  ~Anchor() {
    while (!released_) pause();
  }
  Anchor(const Anchor&) = delete;
  Anchor& operator=(const Anchor&) = delete;

  void Release() { released_ = true; }

 private:
  bool released_ = false;
};

// What `function` returns. It calls functions of Python's C API that may run Python code, and
// throws nothing.
template <typename Function>
[[gnu::noinline]] auto Anchored(const Function& function) {
  Anchor anchor;
  const auto result = function();
  anchor.Release();
  return result;
}

// What `function` returns, which runs without the lock and uses nothing of Python.
template <typename Function>
auto WithoutGil(const Function& function) {
  std::optional<decltype(function())> result;
  std::exception_ptr exception;
  PyThreadState* const thread = PyEval_SaveThread();
  try {
    result.emplace(function());
  } catch (...) {
    exception = std::current_exception();
  }
  {
    Anchor anchor;
    PyEval_RestoreThread(thread);
    anchor.Release();
  }
  if (exception != nullptr) std::rethrow_exception(exception);
  return *std::move(result);
}

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_GIL_H_
