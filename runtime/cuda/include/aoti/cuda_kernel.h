// Triton kernels that C++ launches itself: what the classes of `triton_kernel` targets use.

#ifndef AOTI_CUDA_KERNEL_H_
#define AOTI_CUDA_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aoti/error.h"
#include "aoti/result.h"

namespace aoti {

namespace cuda {
struct KernelTable;
}  // namespace cuda

// Success, or an Error.
template <>
class [[nodiscard]] Result<void> : private ResultBase {
 public:
  using value_type = void;

  Result() = default;
  Result(const Error& error) : error_(error) {}        // NOLINT(google-explicit-constructor)
  Result(Error&& error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const& {
    if (ok()) [[unlikely]]
      DieOfBadAccess("error of a Result that holds a value", nullptr);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

// A stream, which the caller owns: a cudaStream_t or CUstream of the kernel's GPU. By default, the
// legacy default stream.
struct CudaStream {
  CudaStream(void* stream = nullptr)  // NOLINT(google-explicit-constructor)
      : handle(stream) {}

  void* handle;
};

// How many programs of a kernel there are (`tl.num_programs`). None is started where one is 0.
struct CudaGrid {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

struct CudaKernelOptions {
  // The GPU's number as the driver counts; CUDA_VISIBLE_DEVICES applies.
  int cuda_device = 0;
};

// A kernel without types, which generated classes are made of.
class CudaKernel {
 public:
  // An argument that must be divisible by 16, and whether it is.
  struct Divisible {
    const char* name;
    bool is;
  };

  static Result<CudaKernel> Load(const char* label, const cuda::KernelTable& kernels,
                                 const CudaKernelOptions& options);

  // arguments: pointers to the kernel's parameters, as cuLaunchKernel takes them.
  Result<void> Launch(CudaStream stream, CudaGrid grid, void** arguments,
                      std::initializer_list<Divisible> divisible) const;

 private:
  struct Loaded;

  explicit CudaKernel(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}

  std::shared_ptr<const Loaded> loaded_;
};

// Memory of a GPU, which goes back to the driver with the last copy of the object: for programs
// that have none from elsewhere. Allocated by the driver, and so aligned to 256 bytes.
class CudaMemory {
 public:
  static Result<CudaMemory> Allocate(std::size_t bytes, const CudaKernelOptions& options = {});

  void* data() const;
  std::size_t bytes() const;

  // Copies after what is on the stream, and returns when it is done. The host's memory has as many
  // bytes as this.
  Result<void> CopyFrom(std::span<const std::byte> host, CudaStream stream = {}) const;
  Result<void> CopyTo(std::span<std::byte> host, CudaStream stream = {}) const;

 private:
  struct Owned;

  explicit CudaMemory(std::shared_ptr<const Owned> owned) : owned_(std::move(owned)) {}

  std::shared_ptr<const Owned> owned_;
};

// The same with a type.
template <typename T>
class CudaArray {
 public:
  // A copy of the values.
  static Result<CudaArray> Of(std::span<const T> values, const CudaKernelOptions& options = {}) {
    auto array = Uninitialized(values.size(), options);
    if (!array.ok()) return array;
    if (auto copied = array->memory_.CopyFrom(std::as_bytes(values)); !copied.ok()) {
      return copied.error();
    }
    return array;
  }
  static Result<CudaArray> Uninitialized(std::size_t size, const CudaKernelOptions& options = {}) {
    auto memory = CudaMemory::Allocate(size * sizeof(T), options);
    if (!memory.ok()) return memory.error();
    return CudaArray(*std::move(memory));
  }

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::size_t size() const { return memory_.bytes() / sizeof(T); }

  // The values, after what is on the stream is done.
  Result<std::vector<T>> ToHost(CudaStream stream = {}) const {
    std::vector<T> values(size());
    const auto copied = memory_.CopyTo(std::as_writable_bytes(std::span(values)), stream);
    if (!copied.ok()) return copied.error();
    return values;
  }

 private:
  explicit CudaArray(CudaMemory memory) : memory_(std::move(memory)) {}

  CudaMemory memory_;
};

}  // namespace aoti

#endif  // AOTI_CUDA_KERNEL_H_
