#include "aoti/cuda_kernel.h"

#include <new>

#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/queue.h"

namespace aoti {
namespace {

using cuda::Context;
using cuda::CuStream;
using internal::CopyKind;
using internal::DeviceError;
using internal::StrCat;

// What `function` returns, or the error that it throws; `prefix` begins the message.
template <typename T, typename Function>
Result<T> Caught(const char* prefix, const Function& function) {
  try {
    return function();
  } catch (const DeviceError& e) {
    return Error(e.code(), StrCat(prefix, ": ", e.what()));
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, StrCat(prefix, ": no memory is left"));
  }
}

constexpr const char* kMemory = "aoti::CudaMemory";

Error MovedFrom(const char* what) {
  return {ErrorCode::kInvalidArgument, StrCat(what, ": the object was moved from")};
}

Result<void> Copy(const Context& context, void* to, const void* from, std::size_t bytes,
                  CopyKind kind, CudaStream stream) {
  return Caught<void>(kMemory, [&]() -> Result<void> {
    if (bytes == 0) return {};
    const auto handle = static_cast<CuStream>(stream.handle);
    const Context::Current current(context);
    cuda::CopyOn(handle, to, from, bytes, kind, context);
    cuda::Check(cuda::Driver().StreamSynchronize(handle),
                [&] { return StrCat("copying ", bytes, " bytes on ", context.Text()); });
    return {};
  });
}

Error WrongBytes(std::size_t host, std::size_t device) {
  return {ErrorCode::kWrongSize, StrCat(kMemory, ": the host's memory has ", host,
                                        " bytes, and the device's ", device, "; expected as many")};
}

}  // namespace

// Destroyed from the last member on: kernels need their context.
struct CudaKernel::Loaded {
  const char* label;
  std::shared_ptr<Context> context;
  std::shared_ptr<const cuda::Modules> modules;
};

Result<CudaKernel> CudaKernel::Load(const char* label, const cuda::KernelTable& kernels,
                                    const CudaKernelOptions& options) {
  return Caught<CudaKernel>(label, [&]() -> Result<CudaKernel> {
    auto context = Context::Open(options.cuda_device);
    auto modules = context->Load(kernels);
    return CudaKernel(
        std::make_shared<const Loaded>(Loaded{label, std::move(context), std::move(modules)}));
  });
}

Result<void> CudaKernel::Launch(CudaStream stream, CudaGrid grid, void** arguments,
                                std::initializer_list<Divisible> divisible) const {
  if (loaded_ == nullptr) return MovedFrom("aoti::CudaKernel");
  for (const Divisible& argument : divisible) {
    if (!argument.is) {
      return Error(ErrorCode::kInvalidArgument,
                   StrCat(loaded_->label, ": ", argument.name,
                          " is not divisible by 16, as the kernel was compiled for; pass one that "
                          "is, or take it out of divisible_by_16"));
    }
  }
  return Caught<void>(loaded_->label, [&]() -> Result<void> {
    const Context::Current current(*loaded_->context);
    loaded_->modules->Launch(0, grid.x, grid.y, grid.z, arguments,
                             static_cast<CuStream>(stream.handle));
    return {};
  });
}

struct CudaMemory::Owned {
  std::shared_ptr<Context> context;
  internal::DeviceMemory memory;
  std::size_t bytes;
};

Result<CudaMemory> CudaMemory::Allocate(std::size_t bytes, const CudaKernelOptions& options) {
  return Caught<CudaMemory>(kMemory, [&]() -> Result<CudaMemory> {
    auto context = Context::Open(options.cuda_device);
    auto memory = context->Allocate(bytes);
    return CudaMemory(
        std::make_shared<const Owned>(Owned{std::move(context), std::move(memory), bytes}));
  });
}

void* CudaMemory::data() const { return owned_ == nullptr ? nullptr : owned_->memory.get(); }

std::size_t CudaMemory::bytes() const { return owned_ == nullptr ? 0 : owned_->bytes; }

Result<void> CudaMemory::CopyFrom(std::span<const std::byte> host, CudaStream stream) const {
  if (owned_ == nullptr) return MovedFrom(kMemory);
  if (host.size() != bytes()) return WrongBytes(host.size(), bytes());
  return Copy(*owned_->context, data(), host.data(), bytes(), CopyKind::kUpload, stream);
}

Result<void> CudaMemory::CopyTo(std::span<std::byte> host, CudaStream stream) const {
  if (owned_ == nullptr) return MovedFrom(kMemory);
  if (host.size() != bytes()) return WrongBytes(host.size(), bytes());
  return Copy(*owned_->context, host.data(), data(), bytes(), CopyKind::kDownload, stream);
}

}  // namespace aoti
