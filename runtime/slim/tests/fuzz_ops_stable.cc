// Operators that PyTorch's stable C++ API calls: operators that programs bring use them.

#include <algorithm>

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

namespace aoti::slim::fuzz {
namespace {

void MaybeType(Case& c, Stack& stack) {
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(static_cast<std::int64_t>(c.AnyType()));
  }
}

// Contiguous, preserved, channels last in 2 and in 3 dims, or none of them.
void MaybeFormat(Case& c, Stack& stack) {
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Int(0, 3));
  }
}

AOTITorchError Contiguous(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5)) << c.Int(0, 3);
  return stack.Call("aten::contiguous", "");
}

AOTITorchError EmptyLike(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  MaybeType(c, stack);
  stack << nullptr << nullptr << nullptr;
  MaybeFormat(c, stack);
  return stack.Call("aten::empty_like", "");
}

AOTITorchError Empty(Case& c) {
  Stack stack(c);
  stack << c.List(c.Shape(0, 5));
  MaybeType(c, stack);
  stack << nullptr << nullptr << nullptr;
  MaybeFormat(c, stack);
  return stack.Call("aten::empty", "memory_format");
}

template <Name kName>
AOTITorchError New(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 3)) << c.List(c.Shape(0, 5));
  MaybeType(c, stack);
  stack << nullptr << nullptr << nullptr;
  return stack.Call(kName.text, "");
}

AOTITorchError Flatten(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const std::int64_t last = std::max<std::int64_t>(std::ssize(shape) - 1, 0);
  const std::int64_t start = c.random.Range(0, last);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Int(start, start) << c.Int(start, last);
  return stack.Call("aten::flatten", "using_ints");
}

AOTITorchError Matmul(Case& c) {
  const std::int64_t inner = c.Size();
  const Sizes batch = c.Shape(0, 2);
  Sizes left = c.Broadcastable(batch), right = c.Broadcastable(batch);
  if (c.random.Chance(0.2)) {
    left = {inner};
  } else {
    left.insert(left.end(), {c.Size(), inner});
  }
  if (c.random.Chance(0.2)) {
    right = {inner};
  } else {
    right.insert(right.end(), {inner, c.Size()});
  }
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(type, left) << c.In(type, right);
  return stack.Call("aten::matmul", "");
}

AOTITorchError Reshape(Case& c) {
  Sizes shape = c.Shape(1, 5);
  const Handle self = c.In(c.AnyType(), shape);
  std::ranges::reverse(shape);
  if (c.random.Chance(0.3)) shape[0] = -1;
  Stack stack(c);
  stack << self << c.List(shape);
  return stack.Call("aten::reshape", "");
}

AOTITorchError Squeeze(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Dim(shape.size());
  return stack.Call("aten::squeeze", "dim");
}

AOTITorchError SumInto(Case& c) {
  const Sizes shape = c.Shape(0, 4);
  const bool keep = c.random.Chance(0.5);
  Sizes dims, left;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    const bool summed = c.random.Chance(0.5);
    if (summed) dims.push_back(d);
    if (!summed || keep) left.push_back(summed ? 1 : shape[static_cast<std::size_t>(d)]);
  }
  // No dims are all dims.
  if (dims.empty()) left = keep ? Sizes(shape.size(), 1) : Sizes();
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(type, shape);
  stack.Some(c.List(dims));
  stack << keep << nullptr << c.Out(type, left);
  return stack.Call("aten::sum", "IntList_out");
}

AOTITorchError To(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  MaybeType(c, stack);
  stack << nullptr << nullptr << nullptr << false << c.random.Chance(0.5);
  MaybeFormat(c, stack);
  return stack.Call("aten::to", "dtype_layout");
}

AOTITorchError Transpose(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Dim(shape.size()) << c.Dim(shape.size());
  return stack.Call("aten::transpose", "int");
}

AOTITorchError Zero(Case& c) {
  Stack stack(c);
  stack << c.Out(c.AnyType(), c.Shape(0, 5));
  return stack.Call("aten::zero_", "");
}

// -- functions of the C ABI --

AOTITorchError Amax(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Sizes dims;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    if (c.random.Chance(0.4)) dims.push_back(d);
  }
  const Handle self = c.In(c.AnyType(), shape);
  const Sizes& list = c.List(dims);
  return aoti_torch_aten_amax(self, list.data(), std::ssize(list), c.Flag(), c.Result());
}

AOTITorchError Fill(Case& c) {
  return aoti_torch_aten_fill__Scalar(c.Out(c.AnyType(), c.Shape(0, 5)), c.Real());
}

std::int32_t* AType(Case& c) { return c.Maybe(static_cast<std::int32_t>(c.AnyType())); }

AOTITorchError Full(Case& c) {
  const Sizes& sizes = c.List(c.Shape(0, 5));
  const double value = c.Real();
  return aoti_torch_aten_full(sizes.data(), std::ssize(sizes), value, AType(c), nullptr, nullptr, 0,
                              nullptr, c.Result());
}

template <auto kFunction>
AOTITorchError NewByFunction(Case& c) {
  const Handle self = c.In(c.AnyType(), c.Shape(0, 3));
  const Sizes& sizes = c.List(c.Shape(0, 5));
  return kFunction(self, sizes.data(), std::ssize(sizes), AType(c), nullptr, nullptr, 0, nullptr,
                   c.Result());
}

AOTITorchError Subtract(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), c.Broadcastable(shape));
  const Handle other = c.In(c.AnyType(), c.Broadcastable(shape));
  return aoti_torch_aten_subtract_Tensor(self, other, c.Real(), c.Result());
}

// narrow and pad are those of fuzz_ops_tensor.cc under another name.
constexpr Op kOps[] = {
    {"aten::contiguous", Contiguous},
    {"aten::empty_like", EmptyLike},
    {"aten::empty.memory_format", Empty},
    {"aten::new_empty", New<"aten::new_empty">},
    {"aten::new_zeros", New<"aten::new_zeros">},
    {"aten::flatten.using_ints", Flatten},
    {"aten::matmul", Matmul},
    {"aten::reshape", Reshape},
    {"aten::squeeze.dim", Squeeze},
    {"aten::sum.IntList_out", SumInto},
    {"aten::to.dtype_layout", To},
    {"aten::transpose.int", Transpose},
    {"aten::zero_", Zero},
    {"aten_amax", Amax},
    {"aten_fill_.Scalar", Fill},
    {"aten_full", Full},
    {"aten_new_empty", NewByFunction<aoti_torch_aten_new_empty>},
    {"aten_new_zeros", NewByFunction<aoti_torch_aten_new_zeros>},
    {"aten_subtract.Tensor", Subtract},
};

}  // namespace

std::span<const Op> StableOps() { return kOps; }

}  // namespace aoti::slim::fuzz
