// A thin C++ layer over AOTInductor's C ABI, the only thing that the runtime uses of a tensor
// library.
//
// Which library implements it is decided at link time: see //runtime:shim.

#ifndef AOTI_RUNTIME_CORE_SHIM_H_
#define AOTI_RUNTIME_CORE_SHIM_H_

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aoti/dtype.h"
#include "aoti/result.h"
#include "aoti/tensor.h"

namespace aoti::internal {

struct DeleteHandle {
  void operator()(AtenTensorHandle handle) const { aoti_torch_delete_tensor_object(handle); }
};
using OwnedHandle = std::unique_ptr<AtenTensorOpaque, DeleteHandle>;

// The C ABI's number of a dtype.
std::int32_t ShimDType(DType dtype);

// A tensor over memory that somebody else owns; `data` must outlive it. Errors: kInternal.
Result<OwnedHandle> BorrowMemory(void* data, DType dtype, std::span<const std::int64_t> sizes,
                                 std::span<const std::int64_t> strides, std::int64_t offset = 0);

// What the C ABI says about a tensor. Arrays belong to the tensor.
struct HandleInfo {
  void* data;
  std::int32_t dtype;
  std::span<const std::int64_t> sizes;
  const std::int64_t* strides;
};
Result<HandleInfo> Inspect(AtenTensorHandle handle);

// The Tensor that a handle stands for, without a copy; the tensor must be contiguous.
Tensor AdoptHandle(OwnedHandle handle, const HandleInfo& info, DType dtype);

// What a caught exception says, with the C ABI's own account of it and without backtraces or paths
// of the build. Call it in the catch block, on the thread that threw.
std::string DescribeException(const std::exception& exception);

// The version of the library behind the C ABI, such as "2.13.0".
std::string ShimVersion();

// Switches the recording of gradients off, as long as it lives.
class NoGradGuard {
 public:
  NoGradGuard() : was_enabled_(aoti_torch_grad_mode_is_enabled()) {
    if (was_enabled_) aoti_torch_grad_mode_set_enabled(false);
  }
  ~NoGradGuard() {
    if (was_enabled_) aoti_torch_grad_mode_set_enabled(true);
  }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  const bool was_enabled_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_SHIM_H_
