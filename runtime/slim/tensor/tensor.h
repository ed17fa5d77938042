// The tensor that the C ABI's handles point to.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_TENSOR_H_
#define AOTI_RUNTIME_SLIM_TENSOR_TENSOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "runtime/slim/tensor/device.h"
#include "runtime/slim/tensor/dtype.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

using Ints = std::span<const std::int64_t>;

// A copy of a constant in the layout that an operator reads fastest, made at build time.
struct PackedWeight {
  const char* kind;  // "gemm_f32", "conv_f32", ...: see kernels/gemm.h, conv/pack.h
  const void* data;  // aligned to 64 bytes
  std::size_t bytes;
};

// Reference-counted memory. Owned memory comes from the pool, or from the device; borrowed memory
// outlives all references.
class Storage {
 public:
  // device: the index of a CUDA device, or kOnCpu.
  static Storage* Allocate(std::size_t bytes, std::int32_t device = kOnCpu);
  static Storage* Borrow(void* data, std::size_t bytes, std::int32_t device = kOnCpu);

  void Retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() noexcept;

  // Throws OpError for memory of a device, which operators can't read.
  void* data() const {
    if (device_ != kOnCpu) [[unlikely]]
      ThrowOnDevice();
    return data_;
  }
  // The address on whatever device it is.
  void* address() const { return data_; }
  std::int32_t device() const { return device_; }
  std::size_t bytes() const { return bytes_; }
  bool owned() const { return owned_; }

  // Null for most storages. Set once, before other threads use the storage.
  const PackedWeight* packed = nullptr;

 private:
  Storage(void* data, std::size_t bytes, bool owned, std::int32_t device, void* device_owner)
      : data_(data), bytes_(bytes), device_owner_(device_owner), device_(device), owned_(owned) {}

  [[noreturn]] void ThrowOnDevice() const;

  std::atomic<std::int64_t> references_{1};
  void* data_;
  std::size_t bytes_;
  void* device_owner_;  // of owned memory on a device: what DeviceFunctions::release takes
  std::int32_t device_;
  bool owned_;
};

// Sizes and strides of any rank, without an allocation for up to kInline dimensions.
class Dims {
 public:
  static constexpr std::size_t kInline = 6;

  Dims() = default;
  Dims(Ints sizes, Ints strides);
  Dims(const Dims& other) : Dims(other.sizes(), other.strides()) {}
  Dims& operator=(const Dims& other);
  ~Dims() { Free(); }

  std::size_t rank() const { return rank_; }
  std::int64_t* sizes_data() { return at(); }
  std::int64_t* strides_data() { return at() + rank_; }
  Ints sizes() const { return {at(), rank_}; }
  Ints strides() const { return {at() + rank_, rank_}; }

 private:
  const std::int64_t* at() const { return heap_ == nullptr ? inline_ : heap_; }
  std::int64_t* at() { return heap_ == nullptr ? inline_ : heap_; }
  void Free();

  std::size_t rank_ = 0;
  std::int64_t* heap_ = nullptr;
  std::int64_t inline_[2 * kInline];
};

}  // namespace aoti::slim

// A view of a storage. One thread at a time may change it; any number may read it.
struct AtenTensorOpaque {
 public:
  using ScalarType = aoti::slim::ScalarType;
  using Ints = aoti::slim::Ints;

  // Takes over the reference `storage`. offset: in elements.
  AtenTensorOpaque(aoti::slim::Storage* storage, ScalarType dtype, Ints sizes, Ints strides,
                   std::int64_t offset)
      : storage_(storage), offset_(offset), dtype_(dtype), dims_(sizes, strides) {}
  // Another view of the same storage.
  AtenTensorOpaque(const AtenTensorOpaque& other)
      : storage_(other.storage_), offset_(other.offset_), dtype_(other.dtype_), dims_(other.dims_) {
    storage_->Retain();
  }
  AtenTensorOpaque& operator=(const AtenTensorOpaque& other);
  ~AtenTensorOpaque() { storage_->Release(); }

  static void* operator new(std::size_t bytes) { return aoti::slim::Allocate(bytes); }
  static void operator delete(void* tensor, std::size_t bytes) {
    aoti::slim::Release(tensor, bytes);
  }

  ScalarType dtype() const { return dtype_; }
  std::int64_t rank() const { return static_cast<std::int64_t>(dims_.rank()); }
  Ints sizes() const { return dims_.sizes(); }
  Ints strides() const { return dims_.strides(); }
  std::int64_t size(std::int64_t dim) const { return dims_.sizes()[static_cast<std::size_t>(dim)]; }
  std::int64_t stride(std::int64_t dim) const {
    return dims_.strides()[static_cast<std::size_t>(dim)];
  }
  std::int64_t offset() const { return offset_; }  // elements
  std::int64_t numel() const;
  bool is_contiguous() const;  // row-major; dims of size 1 may have any stride
  aoti::slim::Storage& storage() const { return *storage_; }
  aoti::slim::Dims& dims() { return dims_; }

  // Throws OpError for a tensor on a device.
  void* data() const { return FirstElement(storage_->data()); }
  // The same on whatever device it is.
  void* address() const { return FirstElement(storage_->address()); }
  // The elements as T, whose size must be that of the dtype.
  template <typename T>
  T* data() const {
    return static_cast<T*>(data());
  }

 private:
  void* FirstElement(void* storage) const {
    return static_cast<std::byte*>(storage) +
           offset_ * static_cast<std::int64_t>(aoti::slim::SizeOf(dtype_));
  }

  aoti::slim::Storage* storage_;
  std::int64_t offset_;
  ScalarType dtype_;
  aoti::slim::Dims dims_;
};

namespace aoti::slim {

using Tensor = ::AtenTensorOpaque;
using TensorPtr = std::unique_ptr<Tensor>;  // release() it into an `AtenTensorHandle* ret`

// New tensors; their contents are unspecified.
TensorPtr Empty(ScalarType dtype, Ints sizes, std::int32_t device = kOnCpu);  // contiguous
TensorPtr EmptyStrided(ScalarType dtype, Ints sizes, Ints strides,            // strides in elements
                       std::int32_t device = kOnCpu);
inline TensorPtr Empty(ScalarType dtype, std::initializer_list<std::int64_t> sizes) {
  return Empty(dtype, Ints(sizes.begin(), sizes.size()));
}
// A tensor on the same device with the strides that PyTorch gives to results "like" `like`: a dense
// tensor with the same order of dims.
TensorPtr EmptyLike(const Tensor& like);
TensorPtr EmptyLike(const Tensor& like, ScalarType dtype);

// A view, which holds a new reference. offset: in elements, from the beginning of the storage.
TensorPtr View(const Tensor& of, Ints sizes, Ints strides, std::int64_t offset);

// A contiguous tensor with the same values: `of` itself, or a copy.
TensorPtr Contiguous(const Tensor& of);
// A contiguous tensor with the same values in another dtype; `of` itself if nothing changes.
TensorPtr Converted(const Tensor& of, ScalarType dtype);
// Copies values (converting dtypes, broadcasting `from` to `to`'s sizes). To and from a device,
// only tensors of one dtype and layout can be copied.
void Copy(const Tensor& to, const Tensor& from);

// Turns a negative dim into a non-negative one: -1 is the last dim. Throws OpError if there is no
// such dim. A scalar has one dim, of size 1.
std::int64_t WrapDim(std::int64_t dim, std::int64_t rank);
std::int64_t NumElements(Ints sizes);
// For sizes and offsets that a caller passed: throw OpError if the result overflows.
std::int64_t CheckedProduct(std::int64_t a, std::int64_t b);
std::int64_t CheckedSum(std::int64_t a, std::int64_t b);

// Calls body(offset) with the element offset of each position, in row-major order. For several
// tensors: ForEachOffset(sizes, {strides_a, strides_b}, [&](const int64_t* offsets) {...}).
template <std::size_t N, typename Body>
void ForEachOffset(Ints sizes, const Ints (&strides)[N], const Body& body) {
  const std::size_t rank = sizes.size();
  std::int64_t offsets[N] = {};
  if (rank == 0) return body(static_cast<const std::int64_t*>(offsets));
  for (const std::int64_t size : sizes) {
    if (size == 0) return;
  }
  Scratch<std::int64_t> position(rank);
  for (std::size_t d = 0; d < rank; ++d) position[d] = 0;
  for (;;) {
    body(static_cast<const std::int64_t*>(offsets));
    std::size_t d = rank;
    for (;;) {
      if (d == 0) return;
      --d;
      ++position[d];
      for (std::size_t t = 0; t < N; ++t) offsets[t] += strides[t][d];
      if (position[d] < sizes[d]) break;
      for (std::size_t t = 0; t < N; ++t) offsets[t] -= strides[t][d] * sizes[d];
      position[d] = 0;
    }
  }
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_TENSOR_H_
