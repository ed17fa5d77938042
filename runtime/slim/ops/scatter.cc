// scatter with all its reductions, and index_reduce.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string_view>
#include <type_traits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/ops/pointwise.h"

namespace aoti::slim {
namespace {

// The dim other than `dim` along which the work can be split: different positions along it never
// write to the same element. -1 if there is none.
std::int64_t SharedAxis(const Tensor& index, std::int64_t dim) {
  std::int64_t axis = -1;
  for (std::int64_t d = 0; d < index.rank(); ++d) {
    if (d != dim && (axis < 0 || index.size(d) > index.size(axis))) axis = d;
  }
  return axis;
}

// Calls body(out_offset, src_offset) for each element of `index`, in row-major order. The body is
// copied, so it should hold its values directly.
template <typename Body>
void ForEachScattered(const Tensor& out, std::int64_t dim, const Tensor& index, Ints src_strides,
                      const Body& body) {
  const std::int64_t size = out.size(dim), stride = out.stride(dim);
  const auto* places = index.data<std::int64_t>();
  ForEachRunAlong(index.sizes(), {index.strides(), src_strides, SizesWith(out.strides(), dim, 0)},
                  SharedAxis(index, dim),
                  [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                    const Body put = body;  // a copy, which the compiler can keep in registers
                    const std::int64_t put_size = size, put_stride = stride;
                    const std::int64_t at_step = steps[0], src_step = steps[1],
                                       base_step = steps[2];
                    const auto checked = [=](std::int64_t place) {
                      if (static_cast<std::uint64_t>(place) >= static_cast<std::uint64_t>(put_size))
                          [[unlikely]] {
                        ThrowPlace(place, dim, put_size);
                      }
                      return place * put_stride;
                    };
                    const std::int64_t* at = places + offsets[0];
                    std::int64_t src = offsets[1], base = offsets[2];
                    if (at_step == 0 && src_step == 1 && base_step == 1) {  // a row to one element
                      base += checked(*at);
                      for (std::int64_t i = 0; i < count; ++i) put(base + i, src + i);
                      return;
                    }
                    for (std::int64_t i = 0; i < count; ++i) {
                      put(base + checked(*at), src);
                      at += at_step;
                      src += src_step;
                      base += base_step;
                    }
                  });
}

enum class Reduction { kSum, kProduct, kMean, kMax, kMin };

Reduction ParseReduction(std::string_view name) {
  if (name == "sum" || name == "add") return Reduction::kSum;
  if (name == "prod" || name == "multiply") return Reduction::kProduct;
  if (name == "mean") return Reduction::kMean;
  if (name == "amax") return Reduction::kMax;
  if (name == "amin") return Reduction::kMin;
  throw OpError(
      StrCat("reduction \"", name, "\" is unknown, must be sum, prod, mean, amax or amin"));
}

template <typename T>
T Identity(Reduction reduction) {
  using Limits = std::numeric_limits<T>;
  switch (reduction) {
    case Reduction::kProduct:
      return T(1);
    case Reduction::kMax:
      return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    case Reduction::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    default:
      return T(0);
  }
}

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<Accumulator<T>>(value));
  }
}

// Calls visit with the function T(T, T) of this reduction.
template <typename T, typename Visit>
void WithReduction(Reduction reduction, const Visit& visit) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      if constexpr (std::is_same_v<T, bool>) return visit([](T a, T b) { return a || b; });
      return visit([](T a, T b) { return Plus(a, b); });
    case Reduction::kProduct:
      if constexpr (std::is_same_v<T, bool>) return visit([](T a, T b) { return a && b; });
      return visit([](T a, T b) { return Times(a, b); });
    case Reduction::kMax:
      if constexpr (!kIsComplex<T>) {
        return visit([](T a, T b) { return IsNan(a) || a > b ? a : b; });
      }
      break;
    case Reduction::kMin:
      if constexpr (!kIsComplex<T>) {
        return visit([](T a, T b) { return IsNan(a) || a < b ? a : b; });
      }
      break;
  }
  throw OpError("complex numbers have no order");
}

template <typename T>
void DivideBy(const Tensor& out, const Tensor& counts) {
  T* values = out.data<T>();
  const auto* by = counts.data<std::int64_t>();
  ForEachRun(out.sizes(), {out.strides(), counts.strides()}, Order::kAny, kGrain,
             [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
               for (std::int64_t i = 0; i < count; ++i) {
                 T& value = values[offsets[0] + i * steps[0]];
                 const std::int64_t n = std::max<std::int64_t>(by[offsets[1] + i * steps[1]], 1);
                 if constexpr (std::is_integral_v<T>) {
                   const auto wide = static_cast<std::int64_t>(value);
                   const std::int64_t down = wide < 0 && wide % n != 0;
                   value = static_cast<T>(wide / n - down);
                 } else if constexpr (kIsComplex<T>) {
                   value /= static_cast<typename T::value_type>(n);
                 } else {
                   value = static_cast<T>(static_cast<Accumulator<T>>(value) /
                                          static_cast<Accumulator<T>>(n));
                 }
               }
             });
}

// The number of times that each element of `out` is written.
TensorPtr CountPlaces(const Tensor& out, std::int64_t dim, const Tensor& index, bool include_self) {
  TensorPtr counts = Empty(ScalarType::kInt64, out.sizes());
  auto* count = counts->data<std::int64_t>();
  std::fill_n(count, counts->numel(), include_self ? 1 : 0);
  ForEachScattered(*counts, dim, index, index.strides(),
                   [count](std::int64_t to, std::int64_t) { ++count[to]; });
  return counts;
}

// The checked tensors of a scatter; scalars have become tensors of rank 1.
struct Scattering {
  Scattering(const Tensor& out_tensor, std::int64_t dim_argument, const Tensor& index_tensor,
             const Tensor& src_tensor)
      : out(AtLeast1d(out_tensor)),
        index(AtLeast1d(*Indices(index_tensor))),
        src(AtLeast1d(src_tensor)),
        dim(WrapDim(dim_argument, out->rank())) {
    Require(src->dtype() == out->dtype(), "scatter: src is ", NameOf(src->dtype()), ", must be ",
            NameOf(out->dtype()), " as self is");
    if (index->numel() == 0) return;
    Require(index->rank() == out->rank() && src->rank() == out->rank(), "scatter: index has ",
            index->rank(), " dims and src ", src->rank(), ", must have ", out->rank(),
            " as self has");
    for (std::int64_t d = 0; d < index->rank(); ++d) {
      Require(index->size(d) <= src->size(d), "scatter: index is of size ", index->size(d),
              " in dim ", d, ", must not be larger than src, which is of size ", src->size(d));
      Require(d == dim || index->size(d) <= out->size(d), "scatter: index is of size ",
              index->size(d), " in dim ", d, ", must not be larger than self, which is of size ",
              out->size(d));
    }
  }

  bool empty() const { return index->numel() == 0; }

  TensorPtr out, index, src;
  std::int64_t dim;

 private:
  static TensorPtr Indices(const Tensor& index) {
    Require(index.dtype() == ScalarType::kInt64 || index.dtype() == ScalarType::kInt32,
            "scatter: index is ", NameOf(index.dtype()), ", must be int64 or int32");
    return index.dtype() == ScalarType::kInt64 ? TensorPtr(new Tensor(index))
                                               : Converted(index, ScalarType::kInt64);
  }
};

void CopySelf(const Tensor& out, const Tensor& self) {
  const bool same = out.data() == self.data() &&
                    std::ranges::equal(out.strides(), self.strides()) &&
                    std::ranges::equal(out.sizes(), self.sizes());
  if (!same) Copy(out, self);
}

void Scatter(const Tensor& out, const Tensor& self, std::int64_t dim, const Tensor& index,
             const Tensor& src) {
  const Scattering s(out, dim, index, src);
  CopySelf(out, self);
  if (s.empty()) return;
  DispatchBySize(out.dtype(), [&]<typename T>() {
    T* to = s.out->data<T>();
    const T* from = s.src->data<T>();
    ForEachScattered(*s.out, s.dim, *s.index, s.src->strides(),
                     [to, from](std::int64_t at, std::int64_t src_at) { to[at] = from[src_at]; });
  });
}

void ScatterValue(const Tensor& out, const Tensor& self, std::int64_t dim, const Tensor& index,
                  double value) {
  const TensorPtr scalar = FromDouble(value, out.dtype());
  const std::int64_t zeros[kMaxRank] = {};
  Require(index.rank() <= static_cast<std::int64_t>(kMaxRank), "scatter: index has too many dims");
  const TensorPtr src = View(*scalar, index.sizes(), {zeros, index.sizes().size()}, 0);
  Scatter(out, self, dim, index, *src);
}

void ScatterReduce(const Tensor& out, const Tensor& self, std::int64_t dim, const Tensor& index,
                   const Tensor& src, std::string_view name, bool include_self) {
  const Reduction reduction = ParseReduction(name);
  const Scattering s(out, dim, index, src);
  CopySelf(out, self);
  if (s.empty()) return;
  DispatchAll(out.dtype(), [&]<typename T>() {
    T* to = s.out->data<T>();
    const T* from = s.src->data<T>();
    WithReduction<T>(reduction, [&](auto reduce) {
      if (!include_self) {
        if constexpr (!kIsComplex<T>) {
          const T identity = Identity<T>(reduction);
          ForEachScattered(*s.out, s.dim, *s.index, s.src->strides(),
                           [to, identity](std::int64_t at, std::int64_t) { to[at] = identity; });
        } else {
          ForEachScattered(*s.out, s.dim, *s.index, s.src->strides(),
                           [&](std::int64_t at, std::int64_t) {
                             to[at] = reduction == Reduction::kProduct ? T(1) : T(0);
                           });
        }
      }
      ForEachScattered(*s.out, s.dim, *s.index, s.src->strides(),
                       [to, from, reduce](std::int64_t at, std::int64_t src_at) {
                         to[at] = reduce(to[at], from[src_at]);
                       });
    });
    if (reduction == Reduction::kMean) {
      DivideBy<T>(*s.out, *CountPlaces(*s.out, s.dim, *s.index, include_self));
    }
  });
}

TensorPtr IndexReduce(const Tensor& self, std::int64_t dim, const Tensor& index,
                      const Tensor& source, std::string_view reduce, bool include_self) {
  TensorPtr out = Empty(self.dtype(), self.sizes());
  dim = WrapDim(dim, self.rank());
  Require(index.rank() <= 1, "index_reduce: index has ", index.rank(), " dims, must have 1");
  Require(index.numel() == SizeAt(source, dim), "index_reduce: index has ", index.numel(),
          " elements, must have ", SizeAt(source, dim), " as source has in dim ", dim);
  for (std::int64_t d = 0; d < self.rank(); ++d) {
    Require(source.rank() == self.rank() && (d == dim || source.size(d) == self.size(d)),
            "index_reduce: source must be of self's sizes except for dim ", dim);
  }
  // The index, broadcast to all elements of a slice.
  std::int64_t strides[kMaxRank] = {};
  if (source.rank() > 0) strides[dim] = StrideAt(index, 0);
  const TensorPtr expanded =
      View(index, source.sizes(), {strides, source.sizes().size()}, index.offset());
  ScatterReduce(*out, self, dim, *expanded, source, reduce, include_self);
  return out;
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_scatter_src_out(AtenTensorHandle out, AtenTensorHandle self,
                                              int64_t dim, AtenTensorHandle index,
                                              AtenTensorHandle src) {
  return Guarded([&] { aoti::slim::Scatter(*out, *self, dim, *index, *src); });
}

AOTITorchError aoti_torch_scatter_out(AtenTensorHandle out, AtenTensorHandle self, int64_t dim,
                                      AtenTensorHandle index, AtenTensorHandle src) {
  return Guarded([&] { aoti::slim::Scatter(*out, *self, dim, *index, *src); });
}

AOTITorchError aoti_torch_cpu_scatter_value_out(AtenTensorHandle out, AtenTensorHandle self,
                                                int64_t dim, AtenTensorHandle index, double value) {
  return Guarded([&] { aoti::slim::ScatterValue(*out, *self, dim, *index, value); });
}

AOTITorchError aoti_torch_cpu_scatter_reduce_two_out(AtenTensorHandle out, AtenTensorHandle self,
                                                     int64_t dim, AtenTensorHandle index,
                                                     AtenTensorHandle src, const char* reduce,
                                                     int32_t include_self) {
  return Guarded([&] {
    aoti::slim::ScatterReduce(*out, *self, dim, *index, *src, reduce, include_self != 0);
  });
}

AOTITorchError aoti_torch_scatter_reduce_out(AtenTensorHandle out, AtenTensorHandle self,
                                             int64_t dim, AtenTensorHandle index,
                                             AtenTensorHandle src, const char* reduce,
                                             int32_t include_self) {
  return Guarded([&] {
    aoti::slim::ScatterReduce(*out, *self, dim, *index, *src, reduce, include_self != 0);
  });
}

AOTITorchError aoti_torch_cpu_index_reduce(AtenTensorHandle self, int64_t dim,
                                           AtenTensorHandle index, AtenTensorHandle source,
                                           const char* reduce, int32_t include_self,
                                           AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 =
        aoti::slim::IndexReduce(*self, dim, *index, *source, reduce, include_self != 0).release();
  });
}

}  // extern "C"
