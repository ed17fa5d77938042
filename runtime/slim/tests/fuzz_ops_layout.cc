// Operators that move elements or change their view, called by name.

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

namespace aoti::slim::fuzz {
namespace {

AOTITorchError Clone(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Int(0, 3));
  }
  return stack.Call("aten::clone", "");
}

AOTITorchError ToCopy(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  if (c.random.Chance(0.6)) {
    stack << nullptr;
  } else {
    stack.Some(static_cast<std::int64_t>(c.AnyType()));
  }
  stack << nullptr << nullptr << nullptr << false << nullptr;
  return stack.Call("aten::_to_copy", "");
}

AOTITorchError Where(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(ScalarType::kBool, c.Broadcastable(shape)) << c.In(type, c.Broadcastable(shape))
        << c.In(c.random.Chance(0.7) ? type : c.AnyType(), c.Broadcastable(shape));
  return stack.Call("aten::where", "self");
}

AOTITorchError Flip(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Sizes dims;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    if (c.random.Chance(0.5)) dims.push_back(d);
  }
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.List(dims);
  return stack.Call("aten::flip", "");
}

AOTITorchError Unsqueeze(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Dim(shape.size() + 1);
  return stack.Call("aten::unsqueeze", "");
}

AOTITorchError Expand(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Broadcastable(shape)) << c.List(shape) << false;
  return stack.Call("aten::expand", "");
}

AOTITorchError Select(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Int(dim, dim) << c.Int(-size, size - 1);
  return stack.Call("aten::select", "int");
}

AOTITorchError View(Case& c) {
  Sizes shape = c.Shape(1, 5);
  const Handle self = c.In(c.AnyType(), shape);
  if (shape.size() > 1) {
    shape[0] *= shape[1];
    shape.erase(shape.begin() + 1);
  }
  if (c.random.Chance(0.3)) shape[0] = -1;
  Stack stack(c);
  stack << self << c.List(shape);
  return stack.Call("aten::view", "");
}

AOTITorchError AsStrided(Case& c) {
  const Sizes shape = c.Shape(1, 3);
  Sizes sizes, strides;
  for (std::int64_t d = c.random.Range(0, 3); d > 0; --d) {
    sizes.push_back(c.random.Range(0, 3));
    strides.push_back(c.random.Range(0, 3));
  }
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.List(sizes) << c.List(strides);
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Int(0, 5));
  }
  return stack.Call("aten::as_strided", "");
}

AOTITorchError Diagonal(Case& c) {
  const Sizes shape = c.Shape(2, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.Int(-3, 3) << c.Dim(shape.size()) << c.Dim(shape.size());
  return stack.Call("aten::diagonal", "");
}

AOTITorchError CopyInto(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.Out(c.AnyType(), shape) << c.In(c.AnyType(), c.Broadcastable(shape)) << false;
  return stack.Call("aten::copy_", "");
}

AOTITorchError CopyLike(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape) << c.In(c.AnyType(), c.Broadcastable(shape)) << false;
  return stack.Call("aten::copy", "");
}

AOTITorchError SelectScatter(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  Sizes part = shape;
  part.erase(part.begin() + dim);
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(type, shape) << c.In(c.random.Chance(0.7) ? type : c.AnyType(), part)
        << c.Int(dim, dim) << c.Int(-size, size - 1);
  return stack.Call("aten::select_scatter", "");
}

AOTITorchError SliceScatter(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  const std::int64_t first = c.random.Range(0, size), last = c.random.Range(first, size);
  const std::int64_t step = c.random.Range(1, 3);
  Sizes part = shape;
  part[static_cast<std::size_t>(dim)] = (last - first + step - 1) / step;
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(type, shape) << c.In(c.random.Chance(0.7) ? type : c.AnyType(), part)
        << c.Int(dim, dim);
  if (first == 0 && c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Int(first, first));
  }
  if (last == size && c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Int(last, last));
  }
  stack << c.Int(step, step);
  return stack.Call("aten::slice_scatter", "");
}

constexpr Op kOps[] = {
    {"aten::clone", Clone},
    {"aten::_to_copy", ToCopy},
    {"aten::where.self", Where},
    {"aten::flip", Flip},
    {"aten::unsqueeze", Unsqueeze},
    {"aten::expand", Expand},
    {"aten::select.int", Select},
    {"aten::view", View},
    {"aten::as_strided", AsStrided},
    {"aten::diagonal", Diagonal},
    {"aten::copy_", CopyInto},
    {"aten::copy", CopyLike},
    {"aten::select_scatter", SelectScatter},
    {"aten::slice_scatter", SliceScatter},
};

}  // namespace

std::span<const Op> LayoutOps() { return kOps; }

}  // namespace aoti::slim::fuzz
