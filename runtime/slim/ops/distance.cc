// Distances between the rows of matrices, and aten::_trilinear.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// The p-norm of the difference of two rows of `count` numbers.
template <typename T>
T Distance(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, std::int64_t count,
           double p) {
  const auto sum = [&](const auto& term) {
    T total = 0;
    for (std::int64_t i = 0; i < count; ++i)
      total += term(std::fabs(a[i * a_step] - b[i * b_step]));
    return total;
  };
  if (p == 0) return sum([](T d) { return d == 0 ? T(0) : d != d ? d : T(1); });
  if (p == 1) return sum([](T d) { return d; });
  if (p == 2) return std::sqrt(sum([](T d) { return d * d; }));
  if (std::isinf(p)) {
    T most = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      most = std::max(most, std::fabs(a[i * a_step] - b[i * b_step]));
    }
    return most;
  }
  const auto power = static_cast<T>(p);
  return std::pow(sum([power](T d) { return std::pow(d, power); }), 1 / power);
}

void RequireNorm(const char* name, ScalarType dtype, double p) {
  Require(dtype == ScalarType::kFloat32 || dtype == ScalarType::kFloat64, name, ": dtype ",
          NameOf(dtype), " is not supported, float32 and float64 are");
  Require(p >= 0, name, ": p is ", p, ", must not be negative");
}

template <typename Function>
void DispatchNorm(ScalarType dtype, const Function& function) {
  if (dtype == ScalarType::kFloat32) return function.template operator()<float>();
  function.template operator()<double>();
}

TensorPtr Cdist(const Tensor& x1, const Tensor& x2, double p) {
  const std::int64_t rank = std::max(x1.rank(), x2.rank());
  Require(x1.rank() >= 2 && x2.rank() >= 2, "cdist: the inputs have ", x1.rank(), " and ",
          x2.rank(), " dims, must have at least 2");
  Require(x1.dtype() == x2.dtype(), "cdist: the inputs are ", NameOf(x1.dtype()), " and ",
          NameOf(x2.dtype()), ", must be the same");
  RequireNorm("cdist", x1.dtype(), p);
  const std::int64_t columns = x1.size(x1.rank() - 1);
  Require(columns == x2.size(x2.rank() - 1), "cdist: the inputs' rows have ", columns, " and ",
          x2.size(x2.rank() - 1), " numbers, must have the same");
  // The sizes of the result, and the steps of both inputs along its dims.
  Scratch<std::int64_t> sizes(static_cast<std::size_t>(rank));
  Scratch<std::int64_t> steps1(sizes.size()), steps2(sizes.size());
  for (std::int64_t d = 0; d < rank - 2; ++d) {
    const std::int64_t d1 = d - (rank - x1.rank());
    const std::int64_t d2 = d - (rank - x2.rank());
    const std::int64_t size1 = d1 < 0 ? 1 : x1.size(d1);
    const std::int64_t size2 = d2 < 0 ? 1 : x2.size(d2);
    Require(size1 == size2 || size1 == 1 || size2 == 1, "cdist: batches of ", size1, " and ", size2,
            " can't be broadcast to each other");
    const auto i = static_cast<std::size_t>(d);
    sizes[i] = size1 == 1 ? size2 : size1;
    steps1[i] = size1 == 1 ? 0 : x1.stride(d1);
    steps2[i] = size2 == 1 ? 0 : x2.stride(d2);
  }
  const auto last = static_cast<std::size_t>(rank) - 1;
  sizes[last - 1] = x1.size(x1.rank() - 2);
  sizes[last] = x2.size(x2.rank() - 2);
  steps1[last - 1] = steps2[last - 1] = steps1[last] = steps2[last] = 0;
  TensorPtr result = Empty(x1.dtype(), Ints(sizes.data(), sizes.size()));
  const std::int64_t rows = sizes[last - 1];
  const std::int64_t others = sizes[last];
  const std::int64_t row1 = x1.stride(x1.rank() - 2), step1 = x1.stride(x1.rank() - 1);
  const std::int64_t row2 = x2.stride(x2.rank() - 2), step2 = x2.stride(x2.rank() - 1);
  const std::int64_t grain = 16384 / std::max<std::int64_t>(others * columns, 1);
  DispatchNorm(x1.dtype(), [&]<typename T>() {
    T* to = result->data<T>();
    const Ints batches(sizes.data(), last - 1);
    ForEachOffset(
        batches, {Ints(steps1.data(), last - 1), Ints(steps2.data(), last - 1)},
        [&](const std::int64_t* offsets) {
          const T* a = x1.data<T>() + offsets[0];
          const T* b = x2.data<T>() + offsets[1];
          internal::ParallelFor(0, rows, grain, [&](std::int64_t first, std::int64_t end) {
            for (std::int64_t i = first; i < end; ++i) {
              for (std::int64_t j = 0; j < others; ++j) {
                to[i * others + j] = Distance(a + i * row1, step1, b + j * row2, step2, columns, p);
              }
            }
          });
          to += rows * others;
        });
  });
  return result;
}

TensorPtr Pdist(const Tensor& self, double p) {
  Require(self.rank() == 2, "pdist: the input has ", self.rank(), " dims, must have 2");
  RequireNorm("pdist", self.dtype(), p);
  const std::int64_t rows = self.size(0);
  TensorPtr result = Empty(self.dtype(), {rows > 1 ? rows * (rows - 1) / 2 : 0});
  DispatchNorm(self.dtype(), [&]<typename T>() {
    const T* from = self.data<T>();
    internal::ParallelFor(0, rows, 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        // The rows before this one have rows - 1, rows - 2, ... results.
        T* to = result->data<T>() + i * (2 * rows - i - 1) / 2;
        for (std::int64_t j = i + 1; j < rows; ++j) {
          *to++ = Distance(from + i * self.stride(0), self.stride(1), from + j * self.stride(0),
                           self.stride(1), self.size(1), p);
        }
      }
    });
  });
  return result;
}

// The steps of a tensor along the dims of the product, 0 for dims along which it is expanded.
struct Factor {
  Factor(const Tensor& tensor, Ints expand, std::size_t rank) : steps(rank), sizes(rank) {
    std::int64_t own = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const bool expanded =
          std::find(expand.begin(), expand.end(), static_cast<std::int64_t>(d)) != expand.end();
      sizes[d] = expanded ? 1 : tensor.size(own);
      steps[d] = expanded || sizes[d] == 1 ? 0 : tensor.stride(own);
      own += expanded ? 0 : 1;
    }
  }
  Scratch<std::int64_t> steps, sizes;
};

// The product of three tensors, each expanded at the given dims, summed over the dims `sum`.
TensorPtr Trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, Ints expand1,
                    Ints expand2, Ints expand3, Ints sum) {
  const std::size_t rank = static_cast<std::size_t>(i1.rank()) + expand1.size();
  Require(rank == static_cast<std::size_t>(i2.rank()) + expand2.size() &&
              rank == static_cast<std::size_t>(i3.rank()) + expand3.size(),
          "_trilinear: the expanded tensors have different numbers of dims");
  Require(i1.dtype() == i2.dtype() && i1.dtype() == i3.dtype(),
          "_trilinear: the tensors' dtypes differ");
  for (const Ints list : {expand1, expand2, expand3, sum}) {
    for (const std::int64_t d : list) {
      Require(d >= 0 && d < static_cast<std::int64_t>(rank) &&
                  std::count(list.begin(), list.end(), d) == 1,
              "_trilinear: dim ", d, " is out of range 0..", rank - 1, " or given twice");
    }
  }
  const Factor factors[] = {{i1, expand1, rank}, {i2, expand2, rank}, {i3, expand3, rank}};
  // The remaining dims come first, the dims that are summed last.
  Scratch<std::int64_t> sizes(rank), dims(rank);
  std::size_t kept = 0;
  for (const bool summed : {false, true}) {
    for (std::size_t d = 0; d < rank; ++d) {
      const auto dim = static_cast<std::int64_t>(d);
      if ((std::find(sum.begin(), sum.end(), dim) != sum.end()) != summed) continue;
      dims[kept++] = dim;
    }
  }
  kept = rank - sum.size();
  Scratch<std::int64_t> steps1(rank), steps2(rank), steps3(rank);
  Scratch<std::int64_t>* const steps[] = {&steps1, &steps2, &steps3};
  for (std::size_t i = 0; i < rank; ++i) {
    const auto d = static_cast<std::size_t>(dims[i]);
    sizes[i] = 1;
    for (const Factor& factor : factors) {
      const std::int64_t size = factor.sizes[d];
      Require(size == sizes[i] || size == 1 || sizes[i] == 1, "_trilinear: sizes ", size, " and ",
              sizes[i], " at dim ", d, " can't be broadcast to each other");
      if (size != 1) sizes[i] = size;
    }
    for (std::size_t t = 0; t < 3; ++t) (*steps[t])[i] = factors[t].steps[d];
  }
  TensorPtr result = Empty(i1.dtype(), Ints(sizes.data(), kept));
  const Ints outer(sizes.data(), kept), inner(sizes.data() + kept, rank - kept);
  const Ints all[] = {{steps1.data(), rank}, {steps2.data(), rank}, {steps3.data(), rank}};
  DispatchFloating(i1.dtype(), [&]<typename T>() {
    using Sum = Accumulator<T>;
    const T* a = i1.data<T>();
    const T* b = i2.data<T>();
    const T* c = i3.data<T>();
    T* to = result->data<T>();
    ForEachOffset(outer, {all[0].first(kept), all[1].first(kept), all[2].first(kept)},
                  [&](const std::int64_t* at) {
                    Sum total = 0;
                    const std::int64_t base[] = {at[0], at[1], at[2]};
                    ForEachOffset(
                        inner, {all[0].subspan(kept), all[1].subspan(kept), all[2].subspan(kept)},
                        [&](const std::int64_t* more) {
                          total += static_cast<Sum>(a[base[0] + more[0]]) *
                                   static_cast<Sum>(b[base[1] + more[1]]) *
                                   static_cast<Sum>(c[base[2] + more[2]]);
                        });
                    *to++ = static_cast<T>(total);
                  });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

// Distances are always computed from their definition, never by a matrix product: the mode is
// ignored.
AOTITorchError aoti_torch_cpu__cdist_forward(AtenTensorHandle x1, AtenTensorHandle x2, double p,
                                             int64_t* /*compute_mode*/, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = Cdist(*x1, *x2, p).release(); });
}

AOTITorchError aoti_torch_cpu__pdist_forward(AtenTensorHandle self, double p,
                                             AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = Pdist(*self, p).release(); });
}

AOTITorchError aoti_torch_cpu__trilinear(AtenTensorHandle i1, AtenTensorHandle i2,
                                         AtenTensorHandle i3, const int64_t* expand1,
                                         int64_t expand1_len_, const int64_t* expand2,
                                         int64_t expand2_len_, const int64_t* expand3,
                                         int64_t expand3_len_, const int64_t* sumdim,
                                         int64_t sumdim_len_, int64_t /*unroll_dim*/,
                                         AtenTensorHandle* ret0) {
  return Guarded([&] {
    const auto list = [](const int64_t* data, int64_t size) {
      return Ints(data, static_cast<std::size_t>(size));
    };
    *ret0 = Trilinear(*i1, *i2, *i3, list(expand1, expand1_len_), list(expand2, expand2_len_),
                      list(expand3, expand3_len_), list(sumdim, sumdim_len_))
                .release();
  });
}

}  // extern "C"
