// Operators that return another view of the same memory, or change a tensor's metadata.

#include "runtime/slim/ops/views.h"

#include <algorithm>
#include <cstring>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/broadcast.h"

namespace aoti::slim {
namespace {

TensorPtr ViewAs(const Tensor& of, ScalarType dtype, Ints sizes, Ints strides,
                 std::int64_t offset) {
  of.storage().Retain();
  return TensorPtr(new Tensor(&of.storage(), dtype, sizes, strides, offset));
}

TensorPtr Slice(const Tensor& self, std::int64_t dim, std::int64_t first, std::int64_t size,
                std::int64_t step) {
  Shape sizes(self.sizes()), strides(self.strides());
  const auto d = static_cast<std::size_t>(dim);
  sizes[d] = size;
  strides[d] = CheckedProduct(strides[d], step);
  return View(self, sizes, strides, self.offset() + first * self.stride(dim));
}

TensorPtr Narrow(const Tensor& self, std::int64_t dim, std::int64_t start, std::int64_t length) {
  Require(self.rank() > 0, "narrow: a scalar has no dims");
  dim = WrapDim(dim, self.rank());
  const std::int64_t size = self.size(dim);
  Require(start >= -size && start <= size, "narrow: start is ", start, ", must be in ", -size, "..",
          size);
  if (start < 0) start += size;
  Require(length >= 0 && length <= size - start, "narrow: ", length, " elements from ", start,
          " on reach past the end of dim ", dim, ", of size ", size);
  return Slice(self, dim, start, length, 1);
}

TensorPtr SliceStepped(const Tensor& self, std::int64_t dim, const std::int64_t* start,
                       const std::int64_t* end, std::int64_t step) {
  Require(self.rank() > 0, "slice: a scalar has no dims");
  Require(step > 0, "slice: step is ", step, ", must be positive");
  dim = WrapDim(dim, self.rank());
  const std::int64_t size = self.size(dim);
  const auto clamp = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t first = start == nullptr ? 0 : clamp(*start);
  const std::int64_t last = std::max(first, end == nullptr ? size : clamp(*end));
  return Slice(self, dim, first, (last - first) / step + ((last - first) % step != 0), step);
}

TensorPtr Permute(const Tensor& self, Ints dims) {
  Require(static_cast<std::int64_t>(dims.size()) == self.rank(), "permute: ", dims.size(),
          " dims are given, must be ", self.rank());
  Shape sizes, strides;
  std::uint64_t seen = 0;
  for (const std::int64_t given : dims) {
    const std::int64_t dim = WrapDim(given, self.rank());
    Require((seen >> dim & 1) == 0, "permute: dim ", dim, " is given twice");
    seen |= std::uint64_t{1} << dim;
    sizes.Append(self.size(dim));
    strides.Append(self.stride(dim));
  }
  return View(self, sizes, strides, self.offset());
}

// Sets the strides with which `sizes` gives the same elements in the same order; returns false if
// there are none.
bool StridesOfReshaped(const Tensor& self, Ints sizes, Shape& strides) {
  strides = Shape(sizes);
  std::int64_t dim = self.rank() - 1;
  auto at = static_cast<std::int64_t>(sizes.size()) - 1;
  // From the last dim on: each group of adjacent dims is split into the new sizes.
  while (dim >= 0) {
    std::int64_t stride = self.stride(dim), count = self.size(dim);
    while (dim > 0 && (self.size(dim - 1) == 1 || self.stride(dim - 1) == stride * count)) {
      --dim;
      count *= self.size(dim);
    }
    --dim;
    for (; at >= 0 && (count > 1 || sizes[static_cast<std::size_t>(at)] == 1); --at) {
      const auto d = static_cast<std::size_t>(at);
      if (count % sizes[d] != 0) return false;
      strides[d] = stride;
      stride *= sizes[d];
      count /= sizes[d];
    }
    if (count != 1) return false;
  }
  for (; at >= 0; --at) strides[static_cast<std::size_t>(at)] = 1;
  return true;
}

}  // namespace

TensorPtr Reshape(const Tensor& self, Ints given) {
  Shape sizes(given);
  std::int64_t known = 1, open = -1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Require(sizes[d] >= -1, "reshape: a size is ", sizes[d]);
    if (sizes[d] >= 0) {
      known = CheckedProduct(known, sizes[d]);
      continue;
    }
    Require(open < 0, "reshape: -1 is given twice");
    open = static_cast<std::int64_t>(d);
  }
  const std::int64_t count = self.numel();
  if (open >= 0) {
    Require(known > 0 && count % known == 0, "reshape: ", count,
            " elements can't be split into rows of ", known);
    sizes[static_cast<std::size_t>(open)] = count / known;
    known = count;
  }
  Require(known == count, "reshape: the sizes have ", known, " elements, self has ", count);
  Shape strides;
  if (count > 0 && StridesOfReshaped(self, sizes, strides)) {
    return View(self, sizes, strides, self.offset());
  }
  const TensorPtr plain = Contiguous(self);
  return View(*plain, sizes, Empty(ScalarType::kBool, sizes)->strides(), plain->offset());
}

namespace {

TensorPtr SqueezeDim(const Tensor& self, std::int64_t dim) {
  dim = WrapDim(dim, self.rank());
  Shape sizes, strides;
  for (std::int64_t d = 0; d < self.rank(); ++d) {
    if (d == dim && self.size(d) == 1) continue;
    sizes.Append(self.size(d));
    strides.Append(self.stride(d));
  }
  return View(self, sizes, strides, self.offset());
}

TensorPtr ViewAsReal(const Tensor& self) {
  Require(IsComplex(self.dtype()), "view_as_real: self is ", NameOf(self.dtype()),
          ", must be complex");
  Shape sizes(self.sizes()), strides(self.strides());
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= 2;
  sizes.Append(2);
  strides.Append(1);
  const ScalarType dtype =
      self.dtype() == ScalarType::kComplex64 ? ScalarType::kFloat32 : ScalarType::kFloat64;
  return ViewAs(self, dtype, sizes, strides, 2 * self.offset());
}

TensorPtr ViewAsComplex(const Tensor& self) {
  const bool narrow = self.dtype() == ScalarType::kFloat32;
  Require(narrow || self.dtype() == ScalarType::kFloat64, "view_as_complex: self is ",
          NameOf(self.dtype()), ", must be float32 or float64");
  const std::int64_t last = self.rank() - 1;
  Require(last >= 0 && self.size(last) == 2 && self.stride(last) == 1,
          "view_as_complex: the last dim must be of size 2 and stride 1");
  Shape sizes, strides;
  bool even = self.offset() % 2 == 0;
  for (std::int64_t d = 0; d < last; ++d) {
    sizes.Append(self.size(d));
    strides.Append(self.stride(d) / 2);
    even = even && self.stride(d) % 2 == 0;
  }
  Require(even, "view_as_complex: offset and strides must be even");
  return ViewAs(self, narrow ? ScalarType::kComplex64 : ScalarType::kComplex128, sizes, strides,
                self.offset() / 2);
}

TensorPtr ViewDType(const Tensor& self, ScalarType dtype) {
  const auto from = static_cast<std::int64_t>(SizeOf(self.dtype()));
  const auto to = static_cast<std::int64_t>(SizeOf(dtype));
  Shape sizes(self.sizes()), strides(self.strides());
  std::int64_t offset = self.offset();
  if (from != to) {
    Require(self.rank() > 0, "view: a scalar of ", NameOf(self.dtype()), " can't be viewed as ",
            NameOf(dtype));
    const std::size_t last = sizes.size() - 1;
    Require(strides[last] == 1, "view: the last dim's stride is ", strides[last],
            ", must be 1 for a dtype of another size");
    const auto convert = [&](const char* what, std::int64_t value) {
      Require(value * from % to == 0, "view: ", what, " of ", value, " elements of ",
              NameOf(self.dtype()), " can't be viewed as ", NameOf(dtype));
      return value * from / to;
    };
    for (std::size_t d = 0; d < last; ++d) strides[d] = convert("a stride", strides[d]);
    sizes[last] = convert("a last dim", sizes[last]);
    offset = convert("an offset", offset);
  }
  return ViewAs(self, dtype, sizes, strides, offset);
}

Shape StridesOfFormat(Ints sizes, const std::int32_t* format) {
  Shape order;  // the dims from the innermost on
  const std::int64_t rank = static_cast<std::int64_t>(sizes.size());
  const bool channels_last =
      format != nullptr && (*format == aoti_torch_memory_format_channels_last() ||
                            *format == aoti_torch_memory_format_channels_last_3d());
  Require(!channels_last || rank == 4 || rank == 5, "resize_: channels_last needs 4 or 5 dims");
  if (channels_last) order.Append(1);
  for (std::int64_t d = rank - 1; d >= 0; --d) {
    if (!channels_last || d != 1) order.Append(d);
  }
  Shape strides(sizes);
  std::int64_t next = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto d = static_cast<std::size_t>(order[i]);
    strides[d] = next;
    next = CheckedProduct(next, std::max<std::int64_t>(sizes[d], 1));
  }
  return strides;
}

// Elements keep their places in memory; new elements are unspecified.
void Resize(Tensor& self, Ints sizes, const std::int32_t* format) {
  const Shape strides = StridesOfFormat(sizes, format);
  const auto wanted =
      static_cast<std::size_t>(CheckedProduct(CheckedSum(self.offset(), NumElements(sizes)),
                                              static_cast<std::int64_t>(SizeOf(self.dtype()))));
  const std::size_t has = self.storage().bytes();
  if (wanted <= has) {
    self = Tensor(*View(self, sizes, strides, self.offset()));
    return;
  }
  Storage* storage = Storage::Allocate(wanted);
  if (has > 0) std::memcpy(storage->data(), self.storage().data(), has);
  self = Tensor(storage, self.dtype(), sizes, strides, self.offset());
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;
using aoti::slim::Ints;

namespace {
Ints Span(const int64_t* values, int64_t count) {
  return {values, static_cast<std::size_t>(count)};
}
}  // namespace

extern "C" {

AOTITorchError aoti_torch_cpu_narrow(AtenTensorHandle self, int64_t dim, int64_t start,
                                     int64_t length, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Narrow(*self, dim, start, length).release(); });
}

AOTITorchError aoti_torch_cpu_slice_Tensor(AtenTensorHandle self, int64_t dim, int64_t* start,
                                           int64_t* end, int64_t step, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::SliceStepped(*self, dim, start, end, step).release(); });
}

AOTITorchError aoti_torch_cpu_permute(AtenTensorHandle self, const int64_t* dims, int64_t dims_len_,
                                      AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Permute(*self, Span(dims, dims_len_)).release(); });
}

AOTITorchError aoti_torch_cpu_reshape(AtenTensorHandle self, const int64_t* shape,
                                      int64_t shape_len_, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::Reshape(*self, Span(shape, shape_len_)).release(); });
}

AOTITorchError aoti_torch_cpu_squeeze_dim(AtenTensorHandle self, int64_t dim,
                                          AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::SqueezeDim(*self, dim).release(); });
}

AOTITorchError aoti_torch_cpu_view_as_real(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::ViewAsReal(*self).release(); });
}

AOTITorchError aoti_torch_view_as_real(AtenTensorHandle self, AtenTensorHandle* ret) {
  return aoti_torch_cpu_view_as_real(self, ret);
}

AOTITorchError aoti_torch_cpu_view_as_complex(AtenTensorHandle self, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::ViewAsComplex(*self).release(); });
}

AOTITorchError aoti_torch_cpu_view_dtype(AtenTensorHandle self, int32_t dtype,
                                         AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 = aoti::slim::ViewDType(*self, static_cast<aoti::slim::ScalarType>(dtype)).release();
  });
}

AOTITorchError aoti_torch_view_dtype(AtenTensorHandle self, int32_t dtype, AtenTensorHandle* ret) {
  return aoti_torch_cpu_view_dtype(self, dtype, ret);
}

AOTITorchError aoti_torch_cpu_set__source_Tensor(AtenTensorHandle self, AtenTensorHandle source) {
  return Guarded([&] { *self = *source; });
}

AOTITorchError aoti_torch_cpu_resize_(AtenTensorHandle self, const int64_t* size, int64_t size_len_,
                                      int32_t* memory_format) {
  return Guarded([&] { aoti::slim::Resize(*self, Span(size, size_len_), memory_format); });
}

AOTITorchError aoti_torch_cpu_resize_as_(AtenTensorHandle self, AtenTensorHandle the_template,
                                         int32_t* memory_format) {
  return Guarded([&] { aoti::slim::Resize(*self, the_template->sizes(), memory_format); });
}

}  // extern "C"
