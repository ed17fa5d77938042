// A thin C++ layer over the C ABI that a program was linked with. The runtime uses nothing else of
// a tensor library.

#ifndef AOTI_RUNTIME_CORE_SHIM_H_
#define AOTI_RUNTIME_CORE_SHIM_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aoti/dtype.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "runtime/core/device.h"
#include "runtime/core/program.h"

namespace aoti::internal {

struct DeleteHandle {
  const ShimFunctions* shim = nullptr;
  void operator()(AtenTensorHandle handle) const { shim->delete_tensor_object(handle); }
};
using OwnedHandle = std::unique_ptr<AtenTensorOpaque, DeleteHandle>;

// The C ABI's number of a dtype, which is the same in every version of PyTorch.
std::int32_t ShimDType(DType dtype);

// The properties of a tensor, read through the C ABI. The arrays belong to the tensor.
struct HandleInfo {
  void* data;
  bool on_device;  // not in the CPU's memory
  std::int32_t dtype;
  std::span<const std::int64_t> sizes;
  const std::int64_t* strides;
};

class Shim {
 public:
  // `functions` must outlive every handle and tensor that is made here. device: where borrowed
  // memory is.
  explicit Shim(const ShimFunctions& functions, DeviceNumber device = {})
      : functions_(&functions), device_(device) {}

  OwnedHandle Own(AtenTensorHandle handle) const { return {handle, DeleteHandle{functions_}}; }

  // A tensor in borrowed memory; `data` must outlive it. Errors: kInternal.
  Result<OwnedHandle> BorrowMemory(void* data, DType dtype, std::span<const std::int64_t> sizes,
                                   std::span<const std::int64_t> strides,
                                   std::int64_t offset = 0) const;

  Result<HandleInfo> Inspect(AtenTensorHandle handle) const;

  // Moves a handle's tensor, which must be contiguous, into a Tensor without a copy.
  Tensor Adopt(OwnedHandle handle, const HandleInfo& info, DType dtype) const;

  // The text of a caught exception, with the cause that the C ABI recorded and without backtraces
  // or paths of the build. Call it in the catch block, on the thread that threw.
  std::string Describe(const std::exception& exception) const;

  // The version of the library behind the C ABI, such as "2.13.0".
  std::string Version() const;

  const ShimFunctions& functions() const { return *functions_; }

 private:
  const ShimFunctions* functions_;
  DeviceNumber device_;
};

// Disables the recording of gradients as long as it exists.
class NoGradGuard {
 public:
  explicit NoGradGuard(const Shim& shim)
      : shim_(shim.functions()), was_enabled_(shim_.grad_mode_is_enabled()) {
    if (was_enabled_) shim_.grad_mode_set_enabled(false);
  }
  ~NoGradGuard() {
    if (was_enabled_) shim_.grad_mode_set_enabled(true);
  }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  const ShimFunctions& shim_;
  const bool was_enabled_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_SHIM_H_
