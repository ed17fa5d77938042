// Operators on any dtype that move elements or change their view. Inductor writes no kernels of
// them for complex tensors: generated code calls them by name.

#include <algorithm>
#include <optional>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/pointwise.h"
#include "runtime/slim/ops/views.h"

namespace aoti::slim {
namespace {

bool IsContiguousFormat(std::optional<std::int64_t> format) {
  return format &&
         static_cast<std::int32_t>(*format) == aoti_torch_memory_format_contiguous_format();
}

TensorPtr CopyOf(const Tensor& self, ScalarType dtype, std::optional<std::int64_t> format) {
  TensorPtr out = IsContiguousFormat(format) ? Empty(dtype, self.sizes()) : EmptyLike(self, dtype);
  Copy(*out, self);
  return out;
}

// clone(self, *, memory_format)
void Clone(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::optional<std::int64_t> format = TakeOptionalInt(stack[1]);
  stack[0] = Give(CopyOf(*self, self->dtype(), format));
}

// _to_copy(self, *, dtype, layout, device, pin_memory, non_blocking, memory_format)
void ToCopy(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::optional<ScalarType> dtype = TakeOptionalDType(stack[1]);
  for (int i = 2; i < 5; ++i) TakeOptional(stack[i]);
  const std::optional<std::int64_t> format = TakeOptionalInt(stack[6]);
  stack[0] = Give(CopyOf(*self, dtype.value_or(self->dtype()), format));
}

// where(condition, self, other)
void Where(StableIValue* stack) {
  const TensorPtr condition = TakeTensor(stack[0]);
  const TensorPtr self = TakeTensor(stack[1]), other = TakeTensor(stack[2]);
  Require(condition->dtype() == ScalarType::kBool, "where: condition is ",
          NameOf(condition->dtype()), ", must be bool");
  const ScalarType dtype = ResultType(*self, *other);
  const TensorPtr a = As(*self, dtype), b = As(*other, dtype);
  const Shape sizes =
      BroadcastSizes(condition->sizes(), BroadcastSizes(self->sizes(), other->sizes()));
  const Shape operands[] = {BroadcastStrides(*condition, sizes), BroadcastStrides(*a, sizes),
                            BroadcastStrides(*b, sizes)};
  TensorPtr out = EmptyStrided(dtype, sizes, ResultStrides(sizes, operands, 3));
  DispatchBySize(dtype, [&]<typename T>() {
    ForEachRun(sizes, {out->strides(), operands[0], operands[1], operands[2]}, Order::kAny, kGrain,
               [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                 T* to = out->data<T>() + offsets[0];
                 const bool* choose = condition->data<bool>() + offsets[1];
                 const T* x = a->data<T>() + offsets[2];
                 const T* y = b->data<T>() + offsets[3];
                 for (std::int64_t i = 0; i < count; ++i) {
                   to[i * steps[0]] = choose[i * steps[1]] ? x[i * steps[2]] : y[i * steps[3]];
                 }
               });
  });
  stack[0] = Give(std::move(out));
}

// flip(self, dims)
void Flip(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList dims(stack[1]);
  bool flipped[kMaxRank] = {};
  for (std::size_t i = 0; i < dims.size(); ++i) flipped[WrapDim(dims.Int(i), self->rank())] = true;
  TensorPtr out = EmptyLike(*self);
  // The result is written from its last element on, with negative strides along the flipped dims.
  Shape strides(out->strides());
  std::int64_t start = 0;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    if (!flipped[d] || self->size(d) == 0) continue;
    start += (self->size(d) - 1) * out->stride(d);
    strides[static_cast<std::size_t>(d)] = -out->stride(d);
  }
  DispatchBySize(self->dtype(), [&]<typename T>() {
    T* to = out->data<T>() + start;
    const T* from = self->data<T>();
    ForEachRun(self->sizes(), {strides, self->strides()}, Order::kRowMajor, kGrain,
               [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   to[offsets[0] + i * steps[0]] = from[offsets[1] + i * steps[1]];
                 }
               });
  });
  stack[0] = Give(std::move(out));
}

// unsqueeze(self, dim)
void Unsqueeze(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::int64_t dim = WrapDim(TakeInt(stack[1]), self->rank() + 1);
  Shape sizes, strides;
  for (std::int64_t d = 0; d <= self->rank(); ++d) {
    if (d == dim) {
      sizes.Append(1);
      strides.Append(d < self->rank() ? self->size(d) * self->stride(d) : 1);
    }
    if (d == self->rank()) break;
    sizes.Append(self->size(d));
    strides.Append(self->stride(d));
  }
  stack[0] = Give(View(*self, sizes, strides, self->offset()));
}

// expand(self, size, *, implicit)
void Expand(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList given(stack[1]);
  Shape sizes(given.ints());
  Require(sizes.size() >= self->sizes().size(), "expand: ", sizes.size(),
          " sizes are given, self has ", self->rank(), " dims");
  const std::size_t shift = sizes.size() - self->sizes().size();
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Require(sizes[d] >= -1, "expand: a size is ", sizes[d]);
    if (sizes[d] != -1) continue;
    Require(d >= shift, "expand: -1 is given for a dim that self doesn't have");
    sizes[d] = self->sizes()[d - shift];
  }
  NumElements(sizes);  // throws if the product overflows, although no memory is needed
  stack[0] = Give(View(*self, sizes, BroadcastStrides(*self, sizes), self->offset()));
}

// select(self, dim, index)
void Select(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  Require(self->rank() > 0, "select: a scalar has no dims");
  const std::int64_t dim = WrapDim(TakeInt(stack[1]), self->rank());
  const std::int64_t at = WrapIndex(TakeInt(stack[2]), dim, self->size(dim));
  Shape sizes, strides;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    if (d == dim) continue;
    sizes.Append(self->size(d));
    strides.Append(self->stride(d));
  }
  stack[0] = Give(View(*self, sizes, strides, self->offset() + at * self->stride(dim)));
}

// view(self, size)
void ViewSizes(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList sizes(stack[1]);
  stack[0] = Give(Reshape(*self, sizes.ints()));
}

// as_strided(self, size, stride, storage_offset)
void AsStrided(StableIValue* stack) {
  const char* name = "as_strided";
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList sizes(stack[1]), strides(stack[2]);
  const std::int64_t offset = TakeOptionalInt(stack[3]).value_or(self->offset());
  Require(sizes.size() == strides.size(), name, ": ", sizes.size(), " sizes and ", strides.size(),
          " strides are given, must be as many");
  Require(offset >= 0, name, ": the storage offset is ", offset, ", must not be negative");
  const bool empty = NumElements(sizes.ints()) == 0;
  std::int64_t last = offset;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Require(strides.Int(d) >= 0, name, ": the stride of dim ", d, " is ", strides.Int(d),
            ", must not be negative");
    if (!empty) last = CheckedSum(last, CheckedProduct(sizes.Int(d) - 1, strides.Int(d)));
  }
  const auto held = static_cast<std::int64_t>(self->storage().bytes() / SizeOf(self->dtype()));
  Require(last < held || (empty && last == held), name, ": the view reaches element ", last,
          " of the memory, which has ", held, " elements");
  stack[0] = Give(View(*self, sizes.ints(), strides.ints(), offset));
}

// diagonal(self, offset, dim1, dim2)
void Diagonal(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const std::int64_t shift = TakeInt(stack[1]);
  const std::int64_t row = WrapDim(TakeInt(stack[2]), self->rank());
  const std::int64_t column = WrapDim(TakeInt(stack[3]), self->rank());
  Require(row != column, "diagonal: dim1 and dim2 are the same dim, ", row);
  const std::int64_t rows = self->size(row), columns = self->size(column);
  const std::int64_t size = std::max<std::int64_t>(
      0, shift >= 0 ? std::min(rows, columns - shift) : std::min(rows + shift, columns));
  std::int64_t start = self->offset();
  if (size > 0) start += shift >= 0 ? shift * self->stride(column) : -shift * self->stride(row);
  Shape sizes, strides;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    if (d == row || d == column) continue;
    sizes.Append(self->size(d));
    strides.Append(self->stride(d));
  }
  sizes.Append(size);
  strides.Append(CheckedSum(self->stride(row), self->stride(column)));
  stack[0] = Give(View(*self, sizes, strides, start));
}

// copy(self, src, non_blocking): a new tensor with the values of src and all else of self
void CopyLike(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]), from = TakeTensor(stack[1]);
  TensorPtr out = EmptyStrided(self->dtype(), self->sizes(), self->strides());
  Copy(*out, *from);
  stack[0] = Give(std::move(out));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_clone, "aten::clone", "", aoti::slim::Clone)
AOTI_SLIM_DISPATCHER_OP(aten__to_copy, "aten::_to_copy", "", aoti::slim::ToCopy)
AOTI_SLIM_DISPATCHER_OP(aten_where_self, "aten::where", "self", aoti::slim::Where)
AOTI_SLIM_DISPATCHER_OP(aten_flip, "aten::flip", "", aoti::slim::Flip)
AOTI_SLIM_DISPATCHER_OP(aten_unsqueeze, "aten::unsqueeze", "", aoti::slim::Unsqueeze)
AOTI_SLIM_DISPATCHER_OP(aten_expand, "aten::expand", "", aoti::slim::Expand)
AOTI_SLIM_DISPATCHER_OP(aten_select_int, "aten::select", "int", aoti::slim::Select)
AOTI_SLIM_DISPATCHER_OP(aten_view, "aten::view", "", aoti::slim::ViewSizes)
AOTI_SLIM_DISPATCHER_OP(aten_as_strided, "aten::as_strided", "", aoti::slim::AsStrided)
AOTI_SLIM_DISPATCHER_OP(aten_diagonal, "aten::diagonal", "", aoti::slim::Diagonal)
AOTI_SLIM_DISPATCHER_OP(aten_copy, "aten::copy", "", aoti::slim::CopyLike)
