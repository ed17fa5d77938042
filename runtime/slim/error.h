// How operators fail: they throw inside, and the C ABI's functions return AOTI_TORCH_FAILURE.

#ifndef AOTI_RUNTIME_SLIM_ERROR_H_
#define AOTI_RUNTIME_SLIM_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>

#include "runtime/slim/abi.h"

namespace aoti::slim {

// Says what was expected and what came; never names a C++ file.
class OpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Require(index < size, "index ", index, " is out of range 0..", size - 1);
template <typename... Parts>
void Require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw OpError(Text(parts...));
}

// Keeps `what` for torch_exception_get_what_without_backtrace() on this thread.
void SetLastError(const char* what) noexcept;

// Runs the body of a function of the C ABI.
//   AOTITorchError aoti_torch_cpu_mm_out(...) { return Guarded([&] { Mm(*out, *self, *mat2); }); }
template <typename Function>
AOTITorchError Guarded(const Function& function) noexcept {
  try {
    function();
    return AOTI_TORCH_SUCCESS;
  } catch (const std::exception& exception) {
    SetLastError(exception.what());
  } catch (...) {
    SetLastError("unknown exception");
  }
  return AOTI_TORCH_FAILURE;
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ERROR_H_
