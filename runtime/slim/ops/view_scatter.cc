// Copies of a tensor in which a part has other values. An assignment to a part of a complex tensor
// (x[:, 2] = y) becomes calls of them, by name. diagonal_scatter and as_strided_scatter need no
// code here: torch.export takes them apart into a copy, a view and copy_.

#include <cstdint>
#include <optional>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/pointwise.h"

namespace aoti::slim {
namespace {

// What a function of the C ABI makes.
template <typename Function, typename... Arguments>
TensorPtr Made(Function function, Arguments... arguments) {
  Tensor* made = nullptr;
  if (function(arguments..., &made) != AOTI_TORCH_SUCCESS) {
    throw OpError(torch_exception_get_what_without_backtrace());
  }
  return TensorPtr(made);
}

// With the strides of self, except if several of its elements are one place of memory: a part of
// the copy is written.
TensorPtr CopyOf(const TensorPtr& self) {
  bool overlaps = false;
  for (std::int64_t d = 0; d < self->rank(); ++d) {
    overlaps |= self->stride(d) == 0 && self->size(d) > 1;
  }
  return Made(overlaps ? aoti_torch_clone : aoti_torch_clone_preserve_strides, self.get());
}

void CopyIntoPart(const char* name, Tensor& part, const Tensor& src) {
  Require(src.rank() == part.rank(), name, ": src has ", src.rank(), " dims, must have ",
          part.rank());
  for (std::int64_t d = 0; d < part.rank(); ++d) {
    Require(src.size(d) == part.size(d), name, ": dim ", d, " of src is ", src.size(d),
            ", must be ", part.size(d));
  }
  Copy(part, src);
}

// select_scatter(self, src, dim, index)
void SelectScatter(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]), src = TakeTensor(stack[1]);
  Require(self->rank() > 0, "select_scatter: a scalar has no dims");
  const std::int64_t dim = WrapDim(TakeInt(stack[2]), self->rank());
  std::int64_t first = WrapIndex(TakeInt(stack[3]), dim, self->size(dim)), last = first + 1;
  TensorPtr out = CopyOf(self);
  const TensorPtr slice = Made(aoti_torch_cpu_slice_Tensor, out.get(), dim, &first, &last, 1);
  const TensorPtr part = Made(aoti_torch_cpu_squeeze_dim, slice.get(), dim);
  CopyIntoPart("select_scatter", *part, *src);
  stack[0] = Give(std::move(out));
}

// slice_scatter(self, src, dim, start, end, step)
void SliceScatter(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]), src = TakeTensor(stack[1]);
  const std::int64_t dim = TakeInt(stack[2]), step = TakeInt(stack[5]);
  std::optional<std::int64_t> start = TakeOptionalInt(stack[3]), end = TakeOptionalInt(stack[4]);
  TensorPtr out = CopyOf(self);
  const TensorPtr part = Made(aoti_torch_cpu_slice_Tensor, out.get(), dim,
                              start ? &*start : nullptr, end ? &*end : nullptr, step);
  CopyIntoPart("slice_scatter", *part, *src);
  stack[0] = Give(std::move(out));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_select_scatter, "aten::select_scatter", "", aoti::slim::SelectScatter)
AOTI_SLIM_DISPATCHER_OP(aten_slice_scatter, "aten::slice_scatter", "", aoti::slim::SliceScatter)
