// The interpreter's lock (GIL), in a process that may end while a thread waits for it.
//
// Up to Python 3.13, a daemon thread that requests the GIL while the interpreter shuts down is
// ended by pthread_exit(), wherever it is. This unwinds the C++ frames of the thread: their
// destructors would use the interpreter without the GIL, and a noexcept function would end the
// process. With this header such a thread sleeps until the process has ended, as it does since
// Python 3.14.

#ifndef AOTI_RUNTIME_PYTHON_GIL_H_
#define AOTI_RUNTIME_PYTHON_GIL_H_

#include <Python.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <utility>

namespace aoti::python {

// Stops the unwinding of a thread that pthread_exit() ends. No function that is called while an
// Anchor exists may have destructors to run.
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

// Returns the result of `function`, which calls functions of Python's C API that may run Python
// code, and does not throw.
template <typename Function>
[[gnu::noinline]] auto Anchored(const Function& function) {
  Anchor anchor;
  const auto result = function();
  anchor.Release();
  return result;
}

// Returns the result of `function`, which runs without the GIL and uses nothing of Python.
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
