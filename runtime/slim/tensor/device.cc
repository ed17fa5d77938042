#include "runtime/slim/tensor/device.h"

#include <algorithm>
#include <atomic>

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Set when a program is loaded, before its first tensor; always to the same table.
std::atomic<const internal::DeviceFunctions*> g_functions = nullptr;

// Whether the elements are one block of memory, in whatever order.
bool HasNoGaps(const Tensor& tensor) {
  std::int64_t extent = 1;
  for (std::int64_t d = 0; d < tensor.rank(); ++d) {
    if (tensor.stride(d) < 0) return false;
    extent += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return extent == tensor.numel();
}

bool HaveSameLayout(const Tensor& a, const Tensor& b) {
  if (!std::ranges::equal(a.sizes(), b.sizes())) return false;
  for (std::int64_t d = 0; d < a.rank(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

}  // namespace

const internal::DeviceFunctions& OnDevices() {
  const internal::DeviceFunctions* functions = g_functions.load(std::memory_order_acquire);
  Require(functions != nullptr, "a tensor on a CUDA device, in a program for the CPU");
  return *functions;
}

void SetDeviceFunctions(const internal::DeviceFunctions& functions) {
  g_functions.store(&functions, std::memory_order_release);
}

bool IsRecording() {
  const internal::DeviceFunctions* functions = g_functions.load(std::memory_order_acquire);
  return functions != nullptr && functions->is_recording();
}

void Storage::ThrowOnDevice() const {
  throw OpError(
      StrCat("the operator runs on the CPU, but one of its tensors is on cuda:", device_));
}

void CopyOnDevices(const Tensor& to, const Tensor& from) {
  const bool to_cpu = to.storage().device() == kOnCpu;
  const bool from_cpu = from.storage().device() == kOnCpu;
  Require(to.dtype() == from.dtype(), "can't convert ", NameOf(from.dtype()), " to ",
          NameOf(to.dtype()), " in a copy to or from a CUDA device");
  Require(HaveSameLayout(to, from) && HasNoGaps(to),
          "can't copy to or from a CUDA device between tensors of different layouts or with gaps");
  OnDevices().copy(to.address(), from.address(),
                   static_cast<std::size_t>(to.numel()) * SizeOf(to.dtype()),
                   to_cpu     ? internal::CopyKind::kDownload
                   : from_cpu ? internal::CopyKind::kUpload
                              : internal::CopyKind::kOnDevice);
}

TensorPtr Downloaded(const Tensor& tensor) {
  TensorPtr copy = EmptyStrided(tensor.dtype(), tensor.sizes(), tensor.strides());
  if (tensor.numel() > 0) CopyOnDevices(*copy, tensor);
  return copy;
}

}  // namespace aoti::slim
