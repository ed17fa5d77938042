// The C ABI's functions for errors and warnings, and those that have no effect without autograd or
// a profiler.

#include <cmath>
#include <cstdio>
#include <string>

#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

thread_local std::string t_last_error;

}  // namespace

void SetLastError(const char* what) noexcept {
  try {
    t_last_error = what;
  } catch (...) {  // out of memory: omit the message, so that the process goes on
    t_last_error.clear();
  }
}

}  // namespace aoti::slim

namespace c10::detail {

// The headers of c10 call these if a check fails. The file names are omitted, because they are
// paths of the build.
[[noreturn]] void torchCheckFail(const char*, const char*, std::uint32_t, const std::string& what) {
  throw aoti::slim::OpError(what);
}
[[noreturn]] void torchCheckFail(const char*, const char*, std::uint32_t, const char* what) {
  throw aoti::slim::OpError(what);
}

}  // namespace c10::detail

extern "C" {

const char* torch_exception_get_what_without_backtrace() {
  return aoti::slim::t_last_error.empty() ? nullptr : aoti::slim::t_last_error.c_str();
}

// Generated code calls this function, and catches its exception.
void aoti_torch_check(bool cond, const char*, const char*, uint32_t, const char* msg) {
  if (!cond) throw aoti::slim::OpError(msg);
}

void aoti_torch_warn(const char*, const char*, uint32_t, const char* msg) {
  std::fprintf(stderr, "warning: %s\n", msg);
}

AOTITorchError aoti_torch_check_inf_and_nan(const char* tensor_name, AtenTensorHandle tensor) {
  return aoti::slim::Guarded([&] {
    if (!aoti::slim::IsFloating(tensor->dtype())) return;
    const auto values = aoti::slim::Converted(*tensor, aoti::slim::ScalarType::kFloat64);
    const double* data = values->data<double>();
    for (std::int64_t i = 0; i < values->numel(); ++i) {
      aoti::slim::Require(std::isfinite(data[i]), tensor_name, " has a value of ", data[i]);
    }
  });
}

bool aoti_torch_grad_mode_is_enabled() { return false; }
void aoti_torch_grad_mode_set_enabled(bool) {}

AOTITorchError aoti_record_function_start(const char*, IValueMapHandle, const C10IValueHandle*,
                                          const uint64_t, AtenRecordFunctionHandle* guard) {
  *guard = nullptr;
  return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_record_function_end(AtenRecordFunctionHandle) { return AOTI_TORCH_SUCCESS; }

}  // extern "C"
