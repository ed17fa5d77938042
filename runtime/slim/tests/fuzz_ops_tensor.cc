// Elementwise operators, views, and functions on tensors.

#include <torch/headeronly/util/complex.h>

#include <algorithm>

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

template <auto kFunction>
AOTITorchError Unary(Case& c) {
  return kFunction(c.In(c.AnyType(), c.Shape(0, 5)), c.Result());
}

template <auto kFunction>
AOTITorchError Binary(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  const Handle self = c.In(type, c.Broadcastable(shape));
  const Handle other = c.In(c.random.Chance(0.7) ? type : c.AnyType(), c.Broadcastable(shape));
  return kFunction(self, other, c.Result());
}

template <auto kFunction>
AOTITorchError WithScalar(Case& c) {
  return kFunction(c.In(c.AnyType(), c.Shape(0, 5)), c.Real(), c.Result());
}

AOTITorchError AddTensor(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), c.Broadcastable(shape));
  return aoti_torch_cpu_add_Tensor(self, c.In(c.AnyType(), c.Broadcastable(shape)), c.Real(),
                                   c.Result());
}

AOTITorchError AddScalar(Case& c) {
  return aoti_torch_cpu_add_Scalar(c.In(c.AnyType(), c.Shape(0, 5)), c.Real(), c.Real(),
                                   c.Result());
}

AOTITorchError PowScalar(Case& c) {
  return aoti_torch_cpu_pow_Scalar(c.Real(), c.In(c.AnyType(), c.Shape(0, 5)), c.Result());
}

AOTITorchError Polar(Case& c) {
  const ScalarType type = c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64});
  const Sizes shape = c.Shape(0, 5);
  const Handle length = c.In(type, c.Broadcastable(shape));
  return aoti_torch_cpu_polar(length, c.In(type, c.Broadcastable(shape)), c.Result());
}

AOTITorchError FillScalar(Case& c) {
  return aoti_torch_cpu_fill__Scalar(c.Out(c.AnyType(), c.Shape(0, 5)), c.Real());
}

AOTITorchError HannWindow(Case& c) {
  return aoti_torch_cpu_hann_window(c.Int(0, 100),
                                    c.Maybe(static_cast<std::int32_t>(c.FloatType())), nullptr,
                                    nullptr, 0, nullptr, c.Result());
}

AOTITorchError Narrow(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const Handle self = c.In(c.AnyType(), shape);
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  const std::int64_t size = shape[static_cast<std::size_t>(dim)];
  const std::int64_t start = c.random.Range(0, size);
  return aoti_torch_cpu_narrow(self, c.Int(dim, dim), c.Int(start, start), c.Int(0, size - start),
                               c.Result());
}

AOTITorchError Pad(Case& c) {
  const char* const mode = c.Word({"constant", "constant", "reflect", "replicate", "circular"});
  const bool constant = mode[0] == 'c' && mode[1] == 'o';
  const std::int64_t dims = c.random.Range(1, 3);
  const int rank = static_cast<int>(dims) + static_cast<int>(c.random.Range(1, 2));
  const Sizes shape = constant ? c.Shape(static_cast<int>(dims), 5) : c.Shape(rank, rank);
  Sizes pad;
  for (std::int64_t i = 0; i < 2 * dims; ++i) {
    const std::int64_t size = shape[shape.size() - 1 - static_cast<std::size_t>(i / 2)];
    pad.push_back(
        c.random.Range(constant ? -1 : 0, constant ? 3 : std::max<std::int64_t>(size - 1, 0)));
  }
  const Handle self = c.In(c.AnyType(), shape);
  const Sizes& amounts = c.List(pad);
  double* const value = constant ? c.Maybe(c.Real()) : nullptr;
  return aoti_torch_cpu_pad(self, amounts.data(), std::ssize(amounts), mode, value, c.Result());
}

AOTITorchError Permute(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Sizes dims;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    dims.insert(dims.begin() + c.random.Range(0, d), d);
  }
  const Handle self = c.In(c.AnyType(), shape);
  const Sizes& order = c.List(dims);
  return aoti_torch_cpu_permute(self, order.data(), std::ssize(order), c.Result());
}

AOTITorchError Reshape(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  Sizes other = shape;
  if (other.size() > 1 && c.random.Chance(0.6)) {  // join two dims
    other[0] *= other[1];
    other.erase(other.begin() + 1);
  }
  if (c.random.Chance(0.3)) other.push_back(1);
  if (!other.empty() && c.random.Chance(0.3)) other[0] = -1;
  const Handle self = c.In(c.AnyType(), shape);
  const Sizes& sizes = c.List(other);
  return aoti_torch_cpu_reshape(self, sizes.data(), std::ssize(sizes), c.Result());
}

// A tensor from the pool: resizing requires owned memory.
Handle Owned(Case& c) {
  Handle handle = nullptr;
  if (aoti_torch_clone(c.In(c.AnyType(), c.Shape(0, 4)), &handle) != AOTI_TORCH_SUCCESS) {
    Fail("clone", "it failed");
  }
  return handle;
}

AOTITorchError Resize(Case& c) {
  const Handle self = Owned(c);
  const Sizes& size = c.List(c.Shape(0, 4));
  const AOTITorchError error = aoti_torch_cpu_resize_(self, size.data(), std::ssize(size), nullptr);
  if (error == AOTI_TORCH_SUCCESS) {
    c.Own(self);
  } else {
    aoti_torch_delete_tensor_object(self);
  }
  return error;
}

AOTITorchError ResizeAs(Case& c) {
  const Handle self = Owned(c);
  const Handle like = c.In(c.AnyType(), c.Shape(0, 4));
  const AOTITorchError error = aoti_torch_cpu_resize_as_(self, like, nullptr);
  if (error == AOTI_TORCH_SUCCESS) {
    c.Own(self);
  } else {
    aoti_torch_delete_tensor_object(self);
  }
  return error;
}

AOTITorchError SetSource(Case& c) {
  const ScalarType type = c.AnyType();
  return aoti_torch_cpu_set__source_Tensor(c.Out(type, c.Shape(0, 5)), c.In(type, c.Shape(0, 5)));
}

AOTITorchError Slice(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const Handle self = c.In(c.AnyType(), shape);
  return aoti_torch_cpu_slice_Tensor(self, c.Dim(shape.size()), c.Maybe(c.Int(-20, 20)),
                                     c.Maybe(c.Int(-20, 20)), c.Int(1, 3), c.Result());
}

AOTITorchError SqueezeDim(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  return aoti_torch_cpu_squeeze_dim(c.In(c.AnyType(), shape), c.Dim(shape.size()), c.Result());
}

AOTITorchError ViewAsReal(Case& c) {
  return aoti_torch_cpu_view_as_real(
      c.In(c.random.Pick({ScalarType::kComplex64, ScalarType::kComplex128}), c.Shape(0, 5)),
      c.Result());
}

AOTITorchError ViewAsComplex(Case& c) {
  Sizes shape = c.Shape(0, 4);
  shape.push_back(2);
  return aoti_torch_cpu_view_as_complex(
      c.In(c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64}), shape), c.Result());
}

template <auto kFunction>
AOTITorchError ViewDtype(Case& c) {
  const Handle self = c.In(c.AnyType(), c.Shape(0, 5));
  const auto type = static_cast<std::int32_t>(c.AnyType());
  return kFunction(self, c.Wrong() ? 99 : type, c.Result());
}

AOTITorchError CopyTo(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle to = c.Out(c.AnyType(), shape);
  const Handle from = c.In(c.AnyType(), c.random.Chance(0.5) ? shape : c.Broadcastable(shape));
  return c.random.Chance(0.5) ? aoti_torch_copy_(to, from, 0) : aoti_torch_tensor_copy_(from, to);
}

AOTITorchError Zero(Case& c) { return aoti_torch_zero_(c.Out(c.AnyType(), c.Shape(0, 5))); }

AOTITorchError CheckInfAndNan(Case& c) {
  return aoti_torch_check_inf_and_nan("x", c.In(c.AnyType(), c.Shape(0, 5)));
}

AOTITorchError EmptyStrided(Case& c) {
  const Sizes& sizes = c.List(c.Shape(0, 5));
  Sizes strides(sizes.size());
  std::int64_t step = c.random.Range(0, 2);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::clamp<std::int64_t>(sizes[d], 1, 1000);
  }
  return aoti_torch_empty_strided(std::ssize(sizes), sizes.data(), strides.data(),
                                  c.Wrong() ? 99 : static_cast<std::int32_t>(c.AnyType()),
                                  aoti_torch_device_type_cpu(), 0, c.Result());
}

template <auto kFunction, typename T>
AOTITorchError Item(Case& c) {
  T value{};
  return kFunction(c.In(c.AnyType(), c.random.Chance(0.5) ? Sizes{} : Sizes{1, 1}), &value);
}

AOTITorchError SizesOfDims(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), shape);
  std::int64_t value = 0;
  const AOTITorchError error = aoti_torch_get_size(self, c.Dim(shape.size()), &value);
  return aoti_torch_get_stride(self, c.Dim(shape.size()), &value) | error;
}

constexpr Op kOps[] = {
    {"abs", Unary<aoti_torch_cpu_abs>},
    {"angle", Unary<aoti_torch_cpu_angle>},
    {"clone", Unary<aoti_torch_clone>},
    {"clone_preserve_strides", Unary<aoti_torch_clone_preserve_strides>},
    {"new_tensor_handle", Unary<aoti_torch_new_tensor_handle>},
    {"mul.Tensor", Binary<aoti_torch_cpu_mul_Tensor>},
    {"pow.Tensor_Tensor", Binary<aoti_torch_cpu_pow_Tensor_Tensor>},
    {"gcd", Binary<aoti_torch_cpu_gcd>},
    {"mul.Scalar", WithScalar<aoti_torch_cpu_mul_Scalar>},
    {"pow.Tensor_Scalar", WithScalar<aoti_torch_cpu_pow_Tensor_Scalar>},
    {"pow.Scalar", PowScalar},
    {"add.Tensor", AddTensor},
    {"add.Scalar", AddScalar},
    {"polar", Polar},
    {"fill_.Scalar", FillScalar},
    {"hann_window", HannWindow},
    {"narrow", Narrow},
    {"pad", Pad},
    {"permute", Permute},
    {"reshape", Reshape},
    {"resize_", Resize},
    {"resize_as_", ResizeAs},
    {"set_.source_Tensor", SetSource},
    {"slice.Tensor", Slice},
    {"squeeze.dim", SqueezeDim},
    {"view_as_real", ViewAsReal},
    {"view_as_complex", ViewAsComplex},
    {"view.dtype", ViewDtype<aoti_torch_cpu_view_dtype>},
    {"copy_", CopyTo},
    {"zero_", Zero},
    {"check_inf_and_nan", CheckInfAndNan},
    {"empty_strided", EmptyStrided},
    {"item_bool", Item<aoti_torch_item_bool, bool>},
    {"item_int8", Item<aoti_torch_item_int8, std::int8_t>},
    {"item_int64", Item<aoti_torch_item_int64, std::int64_t>},
    {"item_uint8", Item<aoti_torch_item_uint8, std::uint8_t>},
    {"item_float16", Item<aoti_torch_item_float16, c10::Half>},
    {"item_bfloat16", Item<aoti_torch_item_bfloat16, c10::BFloat16>},
    {"item_float32", Item<aoti_torch_item_float32, float>},
    {"item_float64", Item<aoti_torch_item_float64, double>},
    {"item_complex64", Item<aoti_torch_item_complex64, c10::complex<float>>},
    {"get_size", SizesOfDims},
};

}  // namespace

std::span<const Op> TensorOps() { return kOps; }

}  // namespace aoti::slim::fuzz
