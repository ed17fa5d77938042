// The CUDA driver of this machine, and its errors.

#ifndef AOTI_RUNTIME_CUDA_DRIVER_H_
#define AOTI_RUNTIME_CUDA_DRIVER_H_

#include "runtime/core/device.h"
#include "runtime/core/text.h"
#include "runtime/cuda/driver_api.h"

namespace aoti::cuda {

using internal::DeviceError;
using internal::StrCat;

// The driver, which the first call opens and initialises. Throws DeviceError without a driver, with
// one that is too old, and in a child of fork() whose parent had used it: CUDA does not survive
// fork().
const DriverApi& Driver();

// Whether this process is a child of fork() whose parent had opened the driver. Nothing of the
// parent's may then be used or freed.
bool IsForkedChild();

// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
std::string TextOf(CuResult result);

[[noreturn]] void Throw(CuResult result, const std::string& doing);

// Check(Driver().MemFree(memory), [&] { return StrCat("freeing ", bytes, " bytes"); });
template <typename Doing>
void Check(CuResult result, const Doing& doing) {
  if (result != kSuccess) [[unlikely]]
    Throw(result, doing());
}
inline void Check(CuResult result, const char* doing) {
  if (result != kSuccess) [[unlikely]]
    Throw(result, doing);
}

inline CuPointer ToPointer(const void* memory) { return reinterpret_cast<CuPointer>(memory); }
inline void* FromPointer(CuPointer memory) { return reinterpret_cast<void*>(memory); }

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_DRIVER_H_
