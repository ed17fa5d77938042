// Operators that PyTorch's stable C++ API (torch/csrc/stable/ops.h) calls by name: programs' own
// operators use them. //runtime/slim:stable links them.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/pointwise.h"
#include "runtime/slim/ops/views.h"

namespace aoti::slim {
namespace {

// What the C ABI's function reported, as an exception.
void Check(AOTITorchError error) {
  if (error != AOTI_TORCH_SUCCESS) throw OpError(torch_exception_get_what_without_backtrace());
}

// Optional arguments that change nothing on the CPU.
void DropOptionals(StableIValue* first, StableIValue* last) {
  for (; first != last; ++first) TakeOptional(*first);
}

// With the channels, the second dim, next to each other.
TensorPtr EmptyChannelsLast(ScalarType dtype, Ints sizes) {
  Require(sizes.size() == 4 || sizes.size() == 5, "channels last is a format of 4 or 5 dims, not ",
          sizes.size());
  Shape strides(sizes);
  strides[1] = 1;
  std::int64_t stride = sizes[1];
  for (std::size_t d = sizes.size() - 1; d > 1; --d) {
    strides[d] = stride;
    stride = CheckedProduct(stride, std::max<std::int64_t>(sizes[d], 1));
  }
  strides[0] = stride;
  return EmptyStrided(dtype, sizes, strides);
}

TensorPtr InFormat(const Tensor& self, std::int64_t format) {
  const auto wanted = static_cast<std::int32_t>(format);
  if (wanted == aoti_torch_memory_format_preserve_format()) return TensorPtr(new Tensor(self));
  if (wanted == aoti_torch_memory_format_contiguous_format()) return Contiguous(self);
  TensorPtr out = EmptyChannelsLast(self.dtype(), self.sizes());
  if (std::ranges::equal(out->strides(), self.strides())) return TensorPtr(new Tensor(self));
  Copy(*out, self);
  return out;
}

// contiguous(self, *, memory_format)
void ContiguousOf(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  stack[0] = Give(InFormat(*self, TakeInt(stack[1])));
}

// copy_(self, src, non_blocking)
void CopyInto(StableIValue* stack) {
  TensorPtr self = TakeTensor(stack[0]);
  const TensorPtr src = TakeTensor(stack[1]);
  Copy(*self, *src);
  stack[0] = Give(std::move(self));
}

// empty.memory_format(size, *, dtype, layout, device, pin_memory, memory_format)
void EmptyOf(StableIValue* stack) {
  const TakenList sizes(stack[0]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[1]);
  DropOptionals(stack + 2, stack + 5);
  const std::optional<std::int64_t> format = TakeOptionalInt(stack[5]);
  const ScalarType kind = dtype.value_or(ScalarType::kFloat32);
  const bool last =
      format && static_cast<std::int32_t>(*format) >= aoti_torch_memory_format_channels_last();
  stack[0] = Give(last ? EmptyChannelsLast(kind, sizes.ints()) : Empty(kind, sizes.ints()));
}

// empty_like(self, *, dtype, layout, device, pin_memory, memory_format)
void EmptyLikeOf(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[1]);
  DropOptionals(stack + 2, stack + 5);
  const std::optional<std::int64_t> format = TakeOptionalInt(stack[5]);
  const ScalarType kind = dtype.value_or(self->dtype());
  const bool plain =
      format && static_cast<std::int32_t>(*format) == aoti_torch_memory_format_contiguous_format();
  stack[0] = Give(plain ? Empty(kind, self->sizes()) : EmptyLike(*self, kind));
}

// flatten.using_ints(self, start_dim, end_dim)
void Flatten(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::int64_t start = WrapDim(TakeInt(stack[1]), self->rank());
  const std::int64_t end = WrapDim(TakeInt(stack[2]), self->rank());
  Require(start <= end, "flatten: start_dim ", start, " is behind end_dim ", end);
  Shape sizes;
  std::int64_t count = 1;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    if (d < start || d > end) {
      sizes.Append(self->size(d));
    } else {
      count *= self->size(d);
      if (d == end) sizes.Append(count);
    }
  }
  if (self->rank() == 0) sizes.Append(1);
  stack[0] = Give(Reshape(*self, sizes));
}

// A view with the given sizes before the last two, which stay.
TensorPtr WithBatch(const Tensor& self, Ints batch) {
  Shape sizes(batch);
  sizes.Append(self.size(self.rank() - 2));
  sizes.Append(self.size(self.rank() - 1));
  return View(self, sizes, BroadcastStrides(self, sizes), self.offset());
}

// A matrix with one row (dim 0) or one column (dim 1).
TensorPtr WithDim(const Tensor& self, std::int64_t dim) {
  Shape sizes, strides;
  for (std::int64_t d = 0; d < 2; ++d) {
    sizes.Append(d == dim ? 1 : self.size(0));
    strides.Append(d == dim ? 1 : self.stride(0));
  }
  return View(self, sizes, strides, self.offset());
}

TensorPtr Product(const Tensor& a, const Tensor& b) {
  const Ints a_batch = a.sizes().first(a.sizes().size() - 2);
  const Ints b_batch = b.sizes().first(b.sizes().size() - 2);
  const std::int64_t rows = a.size(a.rank() - 2), inner = a.size(a.rank() - 1);
  const std::int64_t columns = b.size(b.rank() - 1);
  Require(inner == b.size(b.rank() - 2), "matmul: self has ", inner, " columns, other has ",
          b.size(b.rank() - 2), " rows");
  if (b_batch.empty()) {
    const std::int64_t flat[] = {-1, inner};
    const TensorPtr tall = inner > 0 ? Reshape(a, flat) : nullptr;
    if (tall != nullptr) {
      TensorPtr out = Empty(a.dtype(), {tall->size(0), columns});
      TensorPtr other(new Tensor(b));
      Check(aoti_torch_cpu_mm_out(out.get(), tall.get(), other.get()));
      Shape sizes(a.sizes());
      sizes[sizes.size() - 1] = columns;
      return Reshape(*out, sizes);
    }
  }
  Shape batch = BroadcastSizes(a_batch, b_batch);
  const std::int64_t count = NumElements(batch);
  const std::int64_t a_sizes[] = {count, rows, inner}, b_sizes[] = {count, inner, columns};
  const TensorPtr left = Reshape(*WithBatch(a, batch), a_sizes);
  const TensorPtr right = Reshape(*WithBatch(b, batch), b_sizes);
  TensorPtr out = Empty(a.dtype(), {count, rows, columns});
  Check(aoti_torch_cpu_bmm_out(out.get(), left.get(), right.get()));
  batch.Append(rows);
  batch.Append(columns);
  return Reshape(*out, batch);
}

// matmul(self, other)
void Matmul(StableIValue* stack) {
  TensorPtr self = TakeTensor(stack[0]), other = TakeTensor(stack[1]);
  Require(self->rank() > 0 && other->rank() > 0, "matmul: a scalar has no dims");
  Require(self->dtype() == other->dtype(), "matmul: self is ", NameOf(self->dtype()), ", other is ",
          NameOf(other->dtype()));
  const bool row = self->rank() == 1, column = other->rank() == 1;
  if (row) self = WithDim(*self, 0);
  if (column) other = WithDim(*other, 1);
  TensorPtr out = Product(*self, *other);
  Shape sizes(out->sizes().first(out->sizes().size() - 2));
  if (!row) sizes.Append(out->size(out->rank() - 2));
  if (!column) sizes.Append(out->size(out->rank() - 1));
  stack[0] = Give(row || column ? Reshape(*out, sizes) : std::move(out));
}

// new_empty(self, size, *, dtype, layout, device, pin_memory)
TensorPtr NewOf(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList sizes(stack[1]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[2]);
  DropOptionals(stack + 3, stack + 6);
  return Empty(dtype.value_or(self->dtype()), sizes.ints());
}

void NewEmpty(StableIValue* stack) { stack[0] = Give(NewOf(stack)); }

void NewZeros(StableIValue* stack) {
  TensorPtr out = NewOf(stack);
  Check(aoti_torch_zero_(out.get()));
  stack[0] = Give(std::move(out));
}

// reshape(self, shape)
void ReshapeTo(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList sizes(stack[1]);
  stack[0] = Give(Reshape(*self, sizes.ints()));
}

// squeeze.dim(self, dim)
void Squeeze(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::int64_t dim = WrapDim(TakeInt(stack[1]), self->rank());
  Shape sizes, strides;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    if (d == dim && self->size(d) == 1) continue;
    sizes.Append(self->size(d));
    strides.Append(self->stride(d));
  }
  stack[0] = Give(View(*self, sizes, strides, self->offset()));
}

// to.dtype_layout(self, *, dtype, layout, device, pin_memory, non_blocking, copy, memory_format)
void To(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[1]);
  DropOptionals(stack + 2, stack + 5);
  const bool copy = TakeBool(stack[6]);
  const std::optional<std::int64_t> format = TakeOptionalInt(stack[7]);
  TensorPtr out = As(*self, dtype.value_or(self->dtype()));
  if (format) out = InFormat(*out, *format);
  if (copy && &out->storage() == &self->storage()) {
    const TensorPtr before = std::move(out);
    out = EmptyLike(*before);
    Copy(*out, *before);
  }
  stack[0] = Give(std::move(out));
}

// transpose.int(self, dim0, dim1)
void Transpose(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const auto a = static_cast<std::size_t>(WrapDim(TakeInt(stack[1]), self->rank()));
  const auto b = static_cast<std::size_t>(WrapDim(TakeInt(stack[2]), self->rank()));
  Shape sizes(self->sizes()), strides(self->strides());
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  stack[0] = Give(View(*self, sizes, strides, self->offset()));
}

// zero_(self)
void Zero(StableIValue* stack) {
  TensorPtr self = TakeTensor(stack[0]);
  Check(aoti_torch_zero_(self.get()));
  stack[0] = Give(std::move(self));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_contiguous, "aten::contiguous", "", aoti::slim::ContiguousOf)
AOTI_SLIM_DISPATCHER_OP(aten_copy_, "aten::copy_", "", aoti::slim::CopyInto)
AOTI_SLIM_DISPATCHER_OP(aten_empty_memory_format, "aten::empty", "memory_format",
                        aoti::slim::EmptyOf)
AOTI_SLIM_DISPATCHER_OP(aten_empty_like, "aten::empty_like", "", aoti::slim::EmptyLikeOf)
AOTI_SLIM_DISPATCHER_OP(aten_flatten_using_ints, "aten::flatten", "using_ints", aoti::slim::Flatten)
AOTI_SLIM_DISPATCHER_OP(aten_matmul, "aten::matmul", "", aoti::slim::Matmul)
AOTI_SLIM_DISPATCHER_OP(aten_new_empty, "aten::new_empty", "", aoti::slim::NewEmpty)
AOTI_SLIM_DISPATCHER_OP(aten_new_zeros, "aten::new_zeros", "", aoti::slim::NewZeros)
AOTI_SLIM_DISPATCHER_OP(aten_reshape, "aten::reshape", "", aoti::slim::ReshapeTo)
AOTI_SLIM_DISPATCHER_OP(aten_squeeze_dim, "aten::squeeze", "dim", aoti::slim::Squeeze)
AOTI_SLIM_DISPATCHER_OP(aten_to_dtype_layout, "aten::to", "dtype_layout", aoti::slim::To)
AOTI_SLIM_DISPATCHER_OP(aten_transpose_int, "aten::transpose", "int", aoti::slim::Transpose)
AOTI_SLIM_DISPATCHER_OP(aten_zero_, "aten::zero_", "", aoti::slim::Zero)
