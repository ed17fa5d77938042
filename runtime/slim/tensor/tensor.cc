#include "runtime/slim/tensor/tensor.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <new>
#include <type_traits>

namespace aoti::slim {

Storage* Storage::Allocate(std::size_t bytes, std::int32_t device) {
  void* memory = slim::Allocate(sizeof(Storage));
  void* data = nullptr;
  void* device_owner = nullptr;
  try {
    data = device == kOnCpu ? slim::Allocate(bytes)
                            : OnDevices().allocate(bytes, device, &device_owner);
  } catch (...) {
    slim::Release(memory, sizeof(Storage));
    throw;
  }
  return new (memory) Storage(data, bytes, /*owned=*/true, device, device_owner);
}

Storage* Storage::Borrow(void* data, std::size_t bytes, std::int32_t device) {
  return new (slim::Allocate(sizeof(Storage)))
      Storage(data, bytes, /*owned=*/false, device, /*device_owner=*/nullptr);
}

void Storage::Release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (device_owner_ != nullptr) {
    OnDevices().release(device_owner_);
  } else if (owned_) {
    slim::Release(data_, bytes_);
  }
  delete packed;
  this->~Storage();
  slim::Release(this, sizeof(Storage));
}

Dims::Dims(Ints sizes, Ints strides) : rank_(sizes.size()) {
  if (rank_ > kInline) {
    heap_ = static_cast<std::int64_t*>(slim::Allocate(2 * rank_ * sizeof(std::int64_t)));
  }
  std::copy(sizes.begin(), sizes.end(), sizes_data());
  std::copy(strides.begin(), strides.end(), strides_data());
}

Dims& Dims::operator=(const Dims& other) {
  if (this != &other) {
    Free();
    new (this) Dims(other);
  }
  return *this;
}

void Dims::Free() {
  if (heap_ != nullptr) slim::Release(heap_, 2 * rank_ * sizeof(std::int64_t));
  heap_ = nullptr;
}

std::int64_t CheckedProduct(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  Require(!__builtin_mul_overflow(a, b, &product), "a tensor is too large: ", a, " * ", b);
  return product;
}

std::int64_t CheckedSum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  Require(!__builtin_add_overflow(a, b, &sum), "a number is too large: ", a, " + ", b);
  return sum;
}

std::int64_t NumElements(Ints sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    Require(size >= 0, "a size is ", size, ", must not be negative");
    Require(!__builtin_mul_overflow(count, size, &count), "a tensor is too large");
  }
  return count;
}

namespace {

// The number of elements from the first to the last in memory, both included.
std::int64_t Extent(Ints sizes, Ints strides) {
  std::int64_t extent = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Require(sizes[d] >= 0, "a size is ", sizes[d], ", must not be negative");
    if (sizes[d] == 0) return 0;
    std::int64_t reach = 0;
    Require(!__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) &&
                !__builtin_add_overflow(extent, reach, &extent),
            "a tensor is too large");
  }
  return extent;
}

std::size_t Bytes(std::int64_t elements, ScalarType dtype) {
  std::int64_t bytes = 0;
  Require(!__builtin_mul_overflow(elements, static_cast<std::int64_t>(SizeOf(dtype)), &bytes),
          "a tensor is too large");
  return static_cast<std::size_t>(bytes);
}

// A buffer for sizes or strides, without an allocation for usual ranks.
class IntBuffer {
 public:
  explicit IntBuffer(std::size_t size) : dims_(kZeros(size), kZeros(size)) {}
  std::int64_t* data() { return dims_.sizes_data(); }
  Ints span() const { return dims_.sizes(); }

 private:
  static Ints kZeros(std::size_t size) {
    static constexpr std::int64_t zeros[64] = {};
    Require(size <= 64, "a tensor has ", size, " dims, at most 64 are supported");
    return {zeros, size};
  }
  Dims dims_;
};

void RowMajor(Ints sizes, std::int64_t* strides) {
  std::int64_t next = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next = CheckedProduct(next, std::max<std::int64_t>(sizes[d], 1));
  }
}

template <typename To, typename From>
To Cast(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                       sizeof(To) < sizeof(std::int64_t)) {
    // Wraps around as PyTorch's conversions do, through the widest integer type.
    return static_cast<To>(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

// The dims of both tensors, outermost stride first; dims that are adjacent in both tensors are
// merged.
struct Plan {
  explicit Plan(std::size_t rank) : sizes(rank), to(rank), from(rank) {}
  std::size_t rank = 0;
  IntBuffer sizes, to, from;
};

void MakePlan(Ints sizes, Ints to, Ints from, Plan& plan) {
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    const std::size_t last = plan.rank;
    if (last > 0 && plan.to.data()[last - 1] == to[d] * sizes[d] &&
        plan.from.data()[last - 1] == from[d] * sizes[d]) {
      plan.sizes.data()[last - 1] *= sizes[d];
      plan.to.data()[last - 1] = to[d];
      plan.from.data()[last - 1] = from[d];
      continue;
    }
    plan.sizes.data()[last] = sizes[d];
    plan.to.data()[last] = to[d];
    plan.from.data()[last] = from[d];
    ++plan.rank;
  }
}

template <typename Row>  // void(int64 to_offset, int64 from_offset)
void ForEachRow(const Plan& plan, const Row& row) {
  const std::size_t outer = plan.rank - 1;
  ForEachOffset(plan.sizes.span().first(outer),
                {plan.to.span().first(outer), plan.from.span().first(outer)},
                [&](const std::int64_t* offsets) { row(offsets[0], offsets[1]); });
}

template <typename T>
void CopySame(T* to, const T* from, const Plan& plan) {
  const std::int64_t count = plan.sizes.span()[plan.rank - 1];
  const std::int64_t to_step = plan.to.span()[plan.rank - 1];
  const std::int64_t from_step = plan.from.span()[plan.rank - 1];
  ForEachRow(plan, [&](std::int64_t to_offset, std::int64_t from_offset) {
    T* out = to + to_offset;
    const T* in = from + from_offset;
    if (to_step == 1 && from_step == 1) {
      std::memcpy(out, in, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
    }
  });
}

template <typename To, typename From>
void CopyConverting(To* to, const From* from, const Plan& plan) {
  const std::int64_t count = plan.sizes.span()[plan.rank - 1];
  const std::int64_t to_step = plan.to.span()[plan.rank - 1];
  const std::int64_t from_step = plan.from.span()[plan.rank - 1];
  ForEachRow(plan, [&](std::int64_t to_offset, std::int64_t from_offset) {
    To* out = to + to_offset;
    const From* in = from + from_offset;
    for (std::int64_t i = 0; i < count; ++i) out[i * to_step] = Cast<To>(in[i * from_step]);
  });
}

// The strides of `from`, broadcast to the sizes of `to`.
void Broadcast(const Tensor& from, Ints sizes, std::int64_t* strides) {
  const std::size_t rank = sizes.size();
  const auto own = static_cast<std::size_t>(from.rank());
  Require(own <= rank, "a tensor of rank ", own, " can't be broadcast to rank ", rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (d + own < rank) {
      strides[d] = 0;
      continue;
    }
    const std::size_t source = d + own - rank;
    const std::int64_t size = from.sizes()[source];
    Require(size == sizes[d] || size == 1, "a dim of size ", size, " can't be broadcast to ",
            sizes[d]);
    strides[d] = size == 1 && sizes[d] != 1 ? 0 : from.strides()[source];
  }
}

}  // namespace

std::int64_t WrapDim(std::int64_t dim, std::int64_t rank) {
  const std::int64_t dims = std::max<std::int64_t>(rank, 1);
  Require(dim >= -dims && dim < dims, "dim ", dim, " is out of range ", -dims, "..", dims - 1);
  return dim < 0 ? dim + dims : dim;
}

TensorPtr EmptyStrided(ScalarType dtype, Ints sizes, Ints strides, std::int32_t device) {
  NumElements(sizes);  // with strides of 0, this may overflow although the memory is small
  const std::size_t bytes = Bytes(Extent(sizes, strides), dtype);
  Storage* storage = Storage::Allocate(bytes, device);
  return TensorPtr(new Tensor(storage, dtype, sizes, strides, 0));
}

TensorPtr Empty(ScalarType dtype, Ints sizes, std::int32_t device) {
  IntBuffer strides(sizes.size());
  RowMajor(sizes, strides.data());
  return EmptyStrided(dtype, sizes, strides.span(), device);
}

TensorPtr EmptyLike(const Tensor& like) { return EmptyLike(like, like.dtype()); }

TensorPtr EmptyLike(const Tensor& like, ScalarType dtype) {
  const auto rank = static_cast<std::size_t>(like.rank());
  const Ints sizes = like.sizes();
  const std::int32_t device = like.storage().device();
  if (like.is_contiguous()) return Empty(dtype, sizes, device);
  // PyTorch's rule (infer_dense_strides): a dense tensor keeps its strides; the dims of other
  // tensors are ordered by stride, and those of equal stride by size.
  IntBuffer order(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    order.data()[d] = static_cast<std::int64_t>(rank - 1 - d);
  }
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    const std::int64_t stride_a = like.stride(a), stride_b = like.stride(b);
    if (stride_a == 0 || stride_b == 0) return 0;
    if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
    return like.size(a) > like.size(b) ? 1 : 0;
  };
  for (std::size_t i = 1; i < rank; ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int comparison = compare(order.data()[j], order.data()[moving]);
      if (comparison > 0) {
        std::swap(order.data()[j], order.data()[moving]);
        moving = j;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  IntBuffer strides(rank);
  std::int64_t next = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto d = static_cast<std::size_t>(order.span()[i]);
    strides.data()[d] = next;
    next = CheckedProduct(next, std::max<std::int64_t>(sizes[d], 1));
  }
  return EmptyStrided(dtype, sizes, strides.span(), device);
}

TensorPtr View(const Tensor& of, Ints sizes, Ints strides, std::int64_t offset) {
  of.storage().Retain();
  return TensorPtr(new Tensor(&of.storage(), of.dtype(), sizes, strides, offset));
}

TensorPtr Contiguous(const Tensor& of) {
  if (of.is_contiguous()) return TensorPtr(new Tensor(of));
  TensorPtr copy = Empty(of.dtype(), of.sizes());
  Copy(*copy, of);
  return copy;
}

TensorPtr Converted(const Tensor& of, ScalarType dtype) {
  if (of.dtype() == dtype) return Contiguous(of);
  TensorPtr copy = Empty(dtype, of.sizes());
  Copy(*copy, of);
  return copy;
}

void Copy(const Tensor& to, const Tensor& from) {
  const Ints sizes = to.sizes();
  if (NumElements(sizes) == 0) return;
  if (to.storage().device() != kOnCpu || from.storage().device() != kOnCpu) {
    return CopyOnDevices(to, from);
  }
  IntBuffer from_strides(sizes.size());
  Broadcast(from, sizes, from_strides.data());
  Plan plan(std::max<std::size_t>(sizes.size(), 1));
  MakePlan(sizes, to.strides(), from_strides.span(), plan);
  if (plan.rank == 0) {  // one element
    plan.rank = 1;
    plan.sizes.data()[0] = 1;
  }
  if (to.dtype() == from.dtype()) {
    DispatchBySize(to.dtype(), [&]<typename T>() { CopySame(to.data<T>(), from.data<T>(), plan); });
    return;
  }
  DispatchAll(from.dtype(), [&]<typename From>() {
    DispatchAll(to.dtype(), [&]<typename To>() {
      if constexpr (std::is_arithmetic_v<From> || std::is_same_v<From, Half> ||
                    std::is_same_v<From, BFloat16>) {
        CopyConverting(to.data<To>(), from.data<From>(), plan);
      } else if constexpr (std::is_same_v<To, std::complex<float>> ||
                           std::is_same_v<To, std::complex<double>>) {
        CopyConverting(to.data<To>(), from.data<From>(), plan);
      } else {
        throw OpError(StrCat("can't convert ", NameOf(from.dtype()), " to ", NameOf(to.dtype())));
      }
    });
  });
}

}  // namespace aoti::slim

AtenTensorOpaque& AtenTensorOpaque::operator=(const AtenTensorOpaque& other) {
  other.storage_->Retain();
  storage_->Release();
  storage_ = other.storage_;
  offset_ = other.offset_;
  dtype_ = other.dtype_;
  dims_ = other.dims_;
  return *this;
}

std::int64_t AtenTensorOpaque::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes()) count *= size;
  return count;
}

bool AtenTensorOpaque::is_contiguous() const {
  std::int64_t expected = 1;
  bool contiguous = true;
  for (std::int64_t d = rank(); d-- > 0;) {
    if (size(d) == 0) return true;
    if (size(d) == 1) continue;
    if (stride(d) != expected) contiguous = false;
    // The number of elements of an expanded tensor may overflow.
    if (contiguous) expected *= size(d);
  }
  return contiguous;
}
