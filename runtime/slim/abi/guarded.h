// The error handling of the C ABI's functions: operators throw exceptions, and the function returns
// AOTI_TORCH_FAILURE.

#ifndef AOTI_RUNTIME_SLIM_ABI_GUARDED_H_
#define AOTI_RUNTIME_SLIM_ABI_GUARDED_H_

#include <exception>

#include "runtime/slim/abi/declarations.h"

namespace aoti::slim {

// Records `what` for torch_exception_get_what_without_backtrace() on this thread.
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

#endif  // AOTI_RUNTIME_SLIM_ABI_GUARDED_H_
