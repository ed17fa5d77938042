// Operators without a C function, called by name.

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

namespace aoti::slim::fuzz {
namespace {

template <Name kName>
AOTITorchError Unary(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  return stack.Call(kName.text, "");
}

template <Name kName, Name kOverload>
AOTITorchError Binary(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  Stack stack(c);
  stack << c.In(type, c.Broadcastable(shape)) << c.In(type, c.Broadcastable(shape));
  return stack.Call(kName.text, kOverload.text);
}

void AddType(Case& c, Stack& stack) {
  if (c.random.Chance(0.6)) {
    stack << nullptr;
  } else {
    stack.Some(static_cast<std::int64_t>(c.AnyType()));
  }
}

template <Name kName>
AOTITorchError ReduceAll(Case& c) {
  Stack stack(c);
  stack << c.In(c.AnyType(), c.Shape(0, 5));
  AddType(c, stack);
  return stack.Call(kName.text, "");
}

template <Name kName, Name kOverload>
AOTITorchError ReduceDims(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.AnyType(), shape);
  if (c.random.Chance(0.2)) {
    stack << nullptr;
  } else {
    Sizes dims;
    for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
      if (c.random.Chance(0.4)) dims.push_back(c.random.Chance(0.2) ? d - std::ssize(shape) : d);
    }
    stack.Some(c.List(dims));
  }
  stack << c.random.Chance(0.5);
  AddType(c, stack);
  return stack.Call(kName.text, kOverload.text);
}

template <Name kName>
AOTITorchError OfDim(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.RealType(), shape) << c.Dim(shape.size()) << c.random.Chance(0.5);
  return stack.Call(kName.text, "dim", 2);
}

AOTITorchError Bincount(Case& c) {
  const std::int64_t count = c.Size();
  Stack stack(c);
  stack << c.Index(c.IntegerType(), {count}, 0, 50);
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.In(c.RealType(), {count}));
  }
  stack << c.Int(0, 60);
  return stack.Call("aten::bincount", "");
}

AOTITorchError Multinomial(Case& c) {
  const std::int64_t categories = c.Positive();
  const ScalarType type = c.FloatType();
  const Handle weights =
      c.random.Chance(0.5) ? c.In(type, {categories}) : c.In(type, {c.Size(), categories});
  if (!c.Wrong()) aoti_torch_cpu_fill__Scalar(weights, 0.5);
  const bool replacement = c.random.Chance(0.5);
  Stack stack(c);
  stack << weights << c.Int(1, replacement ? 50 : categories) << replacement << nullptr;
  return stack.Call("aten::multinomial", "");
}

AOTITorchError Unique2(Case& c) {
  Stack stack(c);
  stack << c.In(c.RealType(), c.Shape(0, 5)) << true << c.random.Chance(0.5)
        << c.random.Chance(0.5);
  return stack.Call("aten::_unique2", "", 3);
}

AOTITorchError UniqueConsecutive(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.RealType(), shape) << c.random.Chance(0.5) << c.random.Chance(0.5);
  if (c.random.Chance(0.5)) {
    stack << nullptr;
  } else {
    stack.Some(c.Dim(shape.size()));
  }
  return stack.Call("aten::unique_consecutive", "", 3);
}

AOTITorchError UniqueDim(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.RealType(), shape) << c.Dim(shape.size()) << true << c.random.Chance(0.5)
        << c.random.Chance(0.5);
  return stack.Call("aten::unique_dim", "", 3);
}

AOTITorchError UniqueDimConsecutive(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Stack stack(c);
  stack << c.In(c.RealType(), shape) << c.Dim(shape.size()) << c.random.Chance(0.5)
        << c.random.Chance(0.5);
  return stack.Call("aten::unique_dim_consecutive", "", 3);
}

AOTITorchError FftC2r(Case& c) {
  const Sizes shape = c.Shape(1, 4);
  Sizes dims;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    if (c.random.Chance(0.6)) dims.push_back(d);
  }
  if (dims.empty()) dims.push_back(0);
  const std::int64_t half = shape[static_cast<std::size_t>(dims.back())];
  Stack stack(c);
  stack << c.In(c.random.Pick({ScalarType::kComplex64, ScalarType::kComplex128}), shape)
        << c.List(dims) << c.Int(0, 2) << c.Int(2 * half - 2, 2 * half - 1);
  return stack.Call("aten::_fft_c2r", "");
}

template <Name kName>
AOTITorchError UpsampleAa(Case& c) {
  Stack stack(c);
  stack << c.In(c.FloatType(), {c.random.Range(0, 3), c.random.Range(1, 5), c.random.Range(1, 17),
                                c.random.Range(1, 17)})
        << c.List({c.random.Range(1, 17), c.random.Range(1, 17)}) << c.random.Chance(0.5);
  for (int d = 0; d < 2; ++d) {
    if (c.random.Chance(0.7)) {
      stack << nullptr;
    } else {
      stack.Some(c.Wrong() ? c.Real() : 0.5 + c.random.Unit());
    }
  }
  return stack.Call(kName.text, "");
}

AOTITorchError Int4Linear(Case& c) {
  const std::int64_t group = c.random.Pick<std::int64_t>({32, 64, 128});
  const std::int64_t k = group * c.random.Range(1, 3);
  const std::int64_t n = 16 * c.random.Range(1, 5);
  const ScalarType type =
      c.random.Pick({ScalarType::kFloat32, ScalarType::kBFloat16, ScalarType::kFloat16});
  Handle weight = nullptr;
  Handle scales = nullptr;
  // Both must be contiguous.
  aoti_torch_clone(c.In(ScalarType::kUInt8, {n, k / 2}), &weight);
  aoti_torch_clone(c.In(type, {k / group, n, 2}), &scales);
  Stack stack(c);
  stack << c.In(type, {c.Size(), k}) << weight << c.Int(group, group) << scales;
  aoti_torch_delete_tensor_object(weight);
  aoti_torch_delete_tensor_object(scales);
  return stack.Call("aten::_weight_int4pack_mm_for_cpu", "");
}

AOTITorchError EmbeddingRenorm(Case& c) {
  const std::int64_t rows = c.Positive();
  Stack stack(c);
  stack << c.In(c.FloatType(), {rows, c.Size()}) << c.Index(c.IndexType(), c.Shape(1, 2), 0, rows)
        << c.Real() << c.random.Pick({0.0, 1.0, 2.0, 3.0});
  return stack.Call("aten::embedding_renorm", "");
}

constexpr Op kOps[] = {
    {"aten::_conj", Unary<"aten::_conj">},
    {"aten::conj_physical", Unary<"aten::conj_physical">},
    {"aten::cos", Unary<"aten::cos">},
    {"aten::exp", Unary<"aten::exp">},
    {"aten::log", Unary<"aten::log">},
    {"aten::neg", Unary<"aten::neg">},
    {"aten::reciprocal", Unary<"aten::reciprocal">},
    {"aten::sgn", Unary<"aten::sgn">},
    {"aten::sin", Unary<"aten::sin">},
    {"aten::sqrt", Unary<"aten::sqrt">},
    {"aten::tanh", Unary<"aten::tanh">},
    {"aten::complex", Binary<"aten::complex", "">},
    {"aten::div.Tensor", Binary<"aten::div", "Tensor">},
    {"aten::sum", ReduceAll<"aten::sum">},
    {"aten::mean", ReduceAll<"aten::mean">},
    {"aten::sum.dim_IntList", ReduceDims<"aten::sum", "dim_IntList">},
    {"aten::mean.dim", ReduceDims<"aten::mean", "dim">},
    {"aten::median.dim", OfDim<"aten::median">},
    {"aten::nanmedian.dim", OfDim<"aten::nanmedian">},
    {"aten::bincount", Bincount},
    {"aten::multinomial", Multinomial},
    {"aten::_unique2", Unique2},
    {"aten::unique_consecutive", UniqueConsecutive},
    {"aten::unique_dim", UniqueDim},
    {"aten::unique_dim_consecutive", UniqueDimConsecutive},
    {"aten::_fft_c2r", FftC2r},
    {"aten::_upsample_bilinear2d_aa", UpsampleAa<"aten::_upsample_bilinear2d_aa">},
    {"aten::_upsample_bicubic2d_aa", UpsampleAa<"aten::_upsample_bicubic2d_aa">},
    {"aten::_weight_int4pack_mm_for_cpu", Int4Linear},
    {"aten::embedding_renorm", EmbeddingRenorm},
};

}  // namespace

std::span<const Op> DispatcherOps() { return kOps; }

}  // namespace aoti::slim::fuzz
