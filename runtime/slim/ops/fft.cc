// Fourier transforms of tensors, one dim after the other.

#include "runtime/slim/math/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// The dims that are transformed, in the given order; each may occur once.
class Axes {
 public:
  Axes(Ints dims, const Tensor& self) : dims_(dims.size()) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      dims_[i] = WrapDim(dims[i], self.rank());
      Require(self.rank() > 0, "fft: a scalar has no dims to transform");
      for (std::size_t j = 0; j < i; ++j) {
        Require(dims_[i] != dims_[j], "fft: dim ", dims[i], " is given twice");
      }
      Require(self.size(dims_[i]) > 0, "fft: dim ", dims[i], " is empty");
    }
  }
  Ints all() const { return {dims_.data(), dims_.size()}; }
  std::int64_t last() const { return dims_[dims_.size() - 1]; }
  Ints but_last() const { return all().first(dims_.size() - 1); }

 private:
  Scratch<std::int64_t> dims_;
};

// A new tensor with the strides that PyTorch's results have with MKL: batch dims are outside,
// transformed dims inside, both in the order of self's strides (the last `fixed` dims keep their
// order).
TensorPtr EmptyResult(const Tensor& self, ScalarType dtype, Ints sizes, Ints dims,
                      std::size_t fixed) {
  const auto rank = static_cast<std::size_t>(self.rank());
  Scratch<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // This is PyTorch's algorithm, in which dims of equal strides may change places.
  std::size_t* batch_end = std::partition(order.begin(), order.end(), [&](std::size_t d) {
    return std::ranges::find(dims, static_cast<std::int64_t>(d)) == dims.end();
  });
  const auto batch = static_cast<std::size_t>(batch_end - order.begin());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    order[batch + i] = static_cast<std::size_t>(dims[i]);
  }
  const auto by_stride = [&](std::size_t a, std::size_t b) {
    return self.strides()[a] > self.strides()[b];
  };
  const auto sort = [&](std::size_t* first, std::size_t* last) {  // stable, few elements
    for (std::size_t* i = first; i != last; ++i) {
      std::rotate(std::upper_bound(first, i, *i, by_stride), i, i + 1);
    }
  };
  sort(order.begin(), order.begin() + batch);
  sort(order.begin() + batch, order.end() - fixed);
  Scratch<std::int64_t> strides(rank);
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    strides[order[i]] = stride;
    stride *= std::max<std::int64_t>(sizes[order[i]], 1);
  }
  return EmptyStrided(dtype, sizes, Ints(strides.data(), rank));
}

template <typename T>
Complex Read(const T& value) {
  return {static_cast<double>(value), 0};
}
template <typename T>
Complex Read(const std::complex<T>& value) {
  return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
}
template <typename T>
void Write(Complex value, T* to) {
  *to = static_cast<T>(value.real);
}
template <typename T>
void Write(Complex value, std::complex<T>* to) {
  *to = {static_cast<T>(value.real), static_cast<T>(value.imag)};
}

// Transforms all lines along `dim`. Sizes differ along `dim` only: a shorter input is the first
// half of a symmetric line, and a shorter output keeps only the first half.
template <typename From, typename To>
void TransformLines(const Tensor& from, const Tensor& to, std::int64_t dim, std::int64_t size,
                    bool forward, double factor) {
  const Fourier fourier(size, forward);
  const std::int64_t in_size = std::min(from.size(dim), size);
  const std::int64_t out_size = to.size(dim);
  const std::int64_t lines = out_size == 0 ? 0 : to.numel() / out_size;
  const std::int64_t in_stride = from.stride(dim), out_stride = to.stride(dim);
  const std::int64_t grain = 20000 / size + 1;
  internal::ParallelFor(0, lines, grain, [&](std::int64_t first, std::int64_t last) {
    Scratch<Complex> line(static_cast<std::size_t>(size));
    Scratch<Complex> scratch(static_cast<std::size_t>(fourier.scratch_size()));
    for (std::int64_t i = first; i < last; ++i) {
      std::int64_t in_offset = 0, out_offset = 0, rest = i;
      for (std::int64_t d = to.rank() - 1; d >= 0; --d) {
        if (d == dim) continue;
        in_offset += rest % to.size(d) * from.stride(d);
        out_offset += rest % to.size(d) * to.stride(d);
        rest /= to.size(d);
      }
      const From* in = from.data<From>() + in_offset;
      for (std::int64_t k = 0; k < in_size; ++k) line[k] = Read(in[k * in_stride]);
      for (std::int64_t k = in_size; k < size; ++k) {
        line[k] = {line[size - k].real, -line[size - k].imag};
      }
      if (in_size < size || !IsComplex(to.dtype())) {  // real because of the symmetry
        line[0].imag = 0;
        if (size % 2 == 0) line[size / 2].imag = 0;
      }
      fourier.Run(line.data(), scratch.data());
      To* out = to.data<To>() + out_offset;
      for (std::int64_t k = 0; k < out_size; ++k) {
        Write({line[k].real * factor, line[k].imag * factor}, out + k * out_stride);
      }
    }
  });
}

void Transform(const Tensor& from, const Tensor& to, std::int64_t dim, std::int64_t size,
               bool forward, double factor) {
  const auto dispatch = [&]<typename Real>() {
    using Number = std::complex<Real>;
    if (!IsComplex(from.dtype())) {
      TransformLines<Real, Number>(from, to, dim, size, forward, factor);
    } else if (!IsComplex(to.dtype())) {
      TransformLines<Number, Real>(from, to, dim, size, forward, factor);
    } else {
      TransformLines<Number, Number>(from, to, dim, size, forward, factor);
    }
  };
  if (from.dtype() == ScalarType::kFloat32 || from.dtype() == ScalarType::kComplex64) {
    dispatch.template operator()<float>();
  } else {
    dispatch.template operator()<double>();
  }
}

double Factor(std::int64_t normalization, double size) {
  Require(normalization >= 0 && normalization <= 2, "fft: normalization is ", normalization,
          ", must be 0 (none), 1 (by the root of the size) or 2 (by the size)");
  if (normalization == 0) return 1;
  return normalization == 1 ? 1 / std::sqrt(size) : 1 / size;
}

double Product(const Tensor& self, Ints dims) {
  double product = 1;
  for (const std::int64_t dim : dims) product *= static_cast<double>(self.size(dim));
  return product;
}

TensorPtr ComplexToComplex(const Tensor& self, Ints dims, std::int64_t normalization,
                           bool forward) {
  Require(IsComplex(self.dtype()), "fft: the input is ", NameOf(self.dtype()), ", must be complex");
  const Axes axes(dims, self);
  double factor = Factor(normalization, Product(self, axes.all()));
  if (dims.empty()) {
    TensorPtr copy = EmptyLike(self);
    Copy(*copy, self);
    return copy;
  }
  TensorPtr result = EmptyResult(self, self.dtype(), self.sizes(), axes.all(), 0);
  const Tensor* from = &self;
  for (const std::int64_t dim : axes.all()) {
    Transform(*from, *result, dim, self.size(dim), forward, factor);
    from = result.get();
    factor = 1;
  }
  return result;
}

TensorPtr RealToComplex(const Tensor& self, Ints dims, std::int64_t normalization, bool one_sided) {
  Require(self.dtype() == ScalarType::kFloat32 || self.dtype() == ScalarType::kFloat64,
          "fft: the input is ", NameOf(self.dtype()), ", must be float32 or float64");
  Require(!dims.empty(), "fft: there are no dims to transform");
  const Axes axes(dims, self);
  const double factor = Factor(normalization, Product(self, axes.all()));
  const std::int64_t size = self.size(axes.last());
  Scratch<std::int64_t> sizes(static_cast<std::size_t>(self.rank()));
  std::ranges::copy(self.sizes(), sizes.begin());
  if (one_sided) sizes[axes.last()] = size / 2 + 1;
  TensorPtr result = EmptyResult(
      self, self.dtype() == ScalarType::kFloat32 ? ScalarType::kComplex64 : ScalarType::kComplex128,
      Ints(sizes.data(), sizes.size()), axes.all(), 1);
  Transform(self, *result, axes.last(), size, true, factor);
  for (const std::int64_t dim : axes.but_last()) {
    Transform(*result, *result, dim, self.size(dim), true, 1);
  }
  return result;
}

TensorPtr ComplexToReal(const Tensor& self, Ints dims, std::int64_t normalization,
                        std::int64_t last_size) {
  Require(!dims.empty(), "fft: there are no dims to transform");
  const Axes axes(dims, self);
  const std::int64_t last = axes.last();
  Require(last_size > 0 && (self.size(last) == last_size / 2 + 1 || self.size(last) == last_size),
          "fft: dim ", last, " has ", self.size(last), " elements, must have ", last_size / 2 + 1,
          " for a result of ", last_size);
  Require(IsComplex(self.dtype()), "fft: the input is ", NameOf(self.dtype()), ", must be complex");
  const TensorPtr half = axes.but_last().empty()
                             ? TensorPtr(new Tensor(self))
                             : ComplexToComplex(self, axes.but_last(), normalization, false);
  const double factor = Factor(normalization, static_cast<double>(last_size));
  Scratch<std::int64_t> sizes(static_cast<std::size_t>(self.rank()));
  std::ranges::copy(self.sizes(), sizes.begin());
  sizes[last] = last_size;
  TensorPtr result = EmptyResult(
      *half, self.dtype() == ScalarType::kComplex64 ? ScalarType::kFloat32 : ScalarType::kFloat64,
      Ints(sizes.data(), sizes.size()), Ints(&last, 1), 0);
  // Only the first half is used, even if the whole line is given.
  Scratch<std::int64_t> half_sizes(static_cast<std::size_t>(self.rank()));
  std::ranges::copy(self.sizes(), half_sizes.begin());
  half_sizes[last] = last_size / 2 + 1;
  const TensorPtr first =
      View(*half, Ints(half_sizes.data(), half_sizes.size()), half->strides(), half->offset());
  Transform(*first, *result, last, last_size, false, factor);
  return result;
}

void ComplexToReal(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList dims(stack[1]);
  stack[0] = Give(ComplexToReal(*self, dims.ints(), TakeInt(stack[2]), TakeInt(stack[3])));
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

AOTI_SLIM_DISPATCHER_OP(aten__fft_c2r, "aten::_fft_c2r", "", ComplexToReal)

extern "C" {

AOTITorchError aoti_torch_cpu__fft_c2c(AtenTensorHandle self, const int64_t* dim, int64_t dim_len_,
                                       int64_t normalization, int32_t forward,
                                       AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Ints dims(dim, static_cast<std::size_t>(dim_len_));
    *ret0 = ComplexToComplex(*self, dims, normalization, forward != 0).release();
  });
}

AOTITorchError aoti_torch_cpu__fft_r2c(AtenTensorHandle self, const int64_t* dim, int64_t dim_len_,
                                       int64_t normalization, int32_t onesided,
                                       AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Ints dims(dim, static_cast<std::size_t>(dim_len_));
    *ret0 = RealToComplex(*self, dims, normalization, onesided != 0).release();
  });
}

}  // extern "C"
