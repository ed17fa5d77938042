// Cumulative sums, products, minima and maxima along a dim.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Adjacent lines are scanned together, so that memory is read in order even if they are
// interleaved.
constexpr std::int64_t kWidth = 64;

// A contiguous tensor as outer x size x inner, where `size` is that of the dim.
struct Split {
  Split(const Tensor& tensor, std::int64_t dim) : size(SizeAt(tensor, dim)) {
    for (std::int64_t d = 0; d < tensor.rank(); ++d) {
      if (d < dim) outer *= tensor.size(d);
      if (d > dim) inner *= tensor.size(d);
    }
  }
  std::int64_t outer = 1;
  std::int64_t size;
  std::int64_t inner = 1;
};

// Calls body(offset, width) for groups of `width` adjacent lines from `offset` on.
template <typename Body>
void ForEachGroup(const Split& split, const Body& body) {
  if (split.size == 0) return;
  const std::int64_t groups = (split.inner + kWidth - 1) / kWidth;
  internal::ParallelFor(
      0, split.outer * groups, LineGrain(split.size * std::min(split.inner, kWidth)),
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const std::int64_t at = i % groups * kWidth;
          body(i / groups * split.size * split.inner + at, std::min(kWidth, split.inner - at));
        }
      });
}

// Writes the state of each line after in[0..i] to out[i]. Line j begins at element j * across, and
// its elements have the stride `along`. `in` may be `out`.
template <typename State, typename T, typename Step>
[[gnu::always_inline]] inline void AccumulateLines(std::int64_t lines, const T* in, T* out,
                                                   std::int64_t size, std::int64_t along,
                                                   std::int64_t across, State start,
                                                   const Step& step) {
  State states[kWidth];
  std::fill_n(states, lines, start);
  for (std::int64_t i = 0; i < size; ++i, in += along, out += along) {
    for (std::int64_t j = 0; j < lines; ++j) {
      states[j] = step(states[j], in[j * across]);
      out[j * across] = static_cast<T>(states[j]);
    }
  }
}

template <typename State, typename T, typename Step>
void Accumulate(const Split& split, const T* in, T* out, State start, const Step& step) {
  const std::int64_t size = split.size;
  if (size == 0) return;
  if (split.inner == 1) {
    constexpr std::int64_t kLines = 4;  // the number of chains of dependent additions in flight
    internal::ParallelFor(0, split.outer, LineGrain(size),
                          [&](std::int64_t first, std::int64_t last) {
                            std::int64_t i = first * size;
                            for (; i + kLines * size <= last * size; i += kLines * size) {
                              AccumulateLines(kLines, in + i, out + i, size, 1, size, start, step);
                            }
                            for (; i < last * size; i += size) {
                              AccumulateLines(1, in + i, out + i, size, 1, 1, start, step);
                            }
                          });
    return;
  }
  ForEachGroup(split, [&](std::int64_t offset, std::int64_t width) {
    AccumulateLines(width, in + offset, out + offset, size, split.inner, 1, start, step);
  });
}

// The type in which PyTorch's CPU kernels accumulate.
template <typename T>
using ScanState = std::conditional_t<std::is_same_v<T, float>, double,
                                     std::conditional_t<std::is_same_v<T, std::complex<float>>,
                                                        std::complex<double>, Accumulator<T>>>;

template <typename T>
ScanState<T> Widen(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<ScanState<T>>(value);
  }
}

enum class Operation { kSum, kProduct };

TensorPtr Scan(const Tensor& self, std::int64_t dim, const std::int32_t* dtype, Operation op) {
  dim = WrapDim(dim, self.rank());
  const ScalarType type = dtype != nullptr           ? static_cast<ScalarType>(*dtype)
                          : IsIntegral(self.dtype()) ? ScalarType::kInt64
                                                     : self.dtype();
  TensorPtr out = Empty(type, self.sizes());
  const Split split(*out, dim);
  const bool direct = self.dtype() == type && self.is_contiguous();
  if (!direct) Copy(*out, self);
  const Tensor* in = direct ? &self : out.get();
  DispatchAll(type, [&]<typename T>() {
    using State = ScanState<T>;
    if constexpr (std::is_same_v<T, bool>) {
      throw OpError("cumsum of bool has an integer dtype, not bool");
    } else if (op == Operation::kSum) {
      Accumulate(split, in->data<T>(), out->data<T>(), State(0),
                 [](State state, T value) { return Plus(state, Widen(value)); });
    } else {
      Accumulate(split, in->data<T>(), out->data<T>(), State(1),
                 [](State state, T value) { return Times(state, Widen(value)); });
    }
  });
  return out;
}

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<double>(value));
  }
}

// Among equal extremes the last one counts; a NaN, and the last one of several, counts above all.
template <typename T, typename Beats>
[[gnu::always_inline]] inline void ExtremeOfLines(std::int64_t lines, const T* in, T* out,
                                                  std::int64_t* indices, const Split& split,
                                                  const Beats& beats) {
  T best[kWidth];
  std::int64_t place[kWidth] = {};
  std::copy_n(in, lines, best);
  for (std::int64_t i = 0; i < split.size; ++i) {
    for (std::int64_t j = 0; j < lines; ++j) {
      const T value = in[j];
      const bool better = beats(value, best[j]) || IsNan(value);
      best[j] = better ? value : best[j];
      place[j] = better ? i : place[j];
      out[j] = best[j];
      indices[j] = place[j];
    }
    in += split.inner;
    out += split.inner;
    indices += split.inner;
  }
}

template <typename T, typename Beats>
void Extreme(const Split& split, const T* in, T* out, std::int64_t* indices, const Beats& beats) {
  ForEachGroup(split, [&](std::int64_t offset, std::int64_t width) {
    if (width == 1) {
      ExtremeOfLines(1, in + offset, out + offset, indices + offset, split, beats);
    } else {
      ExtremeOfLines(width, in + offset, out + offset, indices + offset, split, beats);
    }
  });
}

enum class Which { kMax, kMin };

void CumulativeExtreme(const Tensor& self, std::int64_t dim, Which which, AtenTensorHandle* values,
                       AtenTensorHandle* indices) {
  dim = WrapDim(dim, self.rank());
  const TensorPtr in = Contiguous(self);
  TensorPtr out = Empty(self.dtype(), self.sizes());
  TensorPtr places = Empty(ScalarType::kInt64, self.sizes());
  const Split split(*in, dim);
  DispatchReal(self.dtype(), [&]<typename T>() {
    const T* from = in->data<T>();
    auto* to = places->data<std::int64_t>();
    // A comparison with NaN is false, so NaN stays.
    if (which == Which::kMax) {
      Extreme(split, from, out->data<T>(), to, [](T value, T best) { return value >= best; });
    } else {
      Extreme(split, from, out->data<T>(), to, [](T value, T best) { return value <= best; });
    }
  });
  *values = out.release();
  *indices = places.release();
}

template <typename State>
State LogAddExp(State a, State b) {
  const State least = std::isnan(a) || a < b ? a : b;
  const State most = std::isnan(b) || a < b ? b : a;
  // The difference of equal infinities would be NaN.
  if (least == most && std::isinf(least)) return most;
  if (std::isnan(least) || std::isnan(most)) return std::numeric_limits<State>::quiet_NaN();
  return std::log1p(std::exp(least - most)) + most;
}

TensorPtr LogCumSumExp(const Tensor& self, std::int64_t dim) {
  dim = WrapDim(dim, self.rank());
  const TensorPtr in = Contiguous(self);
  TensorPtr out = Empty(self.dtype(), self.sizes());
  const Split split(*in, dim);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    using State = Accumulator<T>;
    Accumulate(split, in->data<T>(), out->data<T>(), -std::numeric_limits<State>::infinity(),
               [](State state, T value) { return LogAddExp(static_cast<State>(value), state); });
  });
  return out;
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_cumsum(AtenTensorHandle self, int64_t dim, int32_t* dtype,
                                     AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = aoti::slim::Scan(*self, dim, dtype, aoti::slim::Operation::kSum).release(); });
}

AOTITorchError aoti_torch_cpu_cumprod(AtenTensorHandle self, int64_t dim, int32_t* dtype,
                                      AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 = aoti::slim::Scan(*self, dim, dtype, aoti::slim::Operation::kProduct).release();
  });
}

AOTITorchError aoti_torch_cpu_cummax(AtenTensorHandle self, int64_t dim, AtenTensorHandle* ret0,
                                     AtenTensorHandle* ret1) {
  return Guarded(
      [&] { aoti::slim::CumulativeExtreme(*self, dim, aoti::slim::Which::kMax, ret0, ret1); });
}

AOTITorchError aoti_torch_cpu_cummin(AtenTensorHandle self, int64_t dim, AtenTensorHandle* ret0,
                                     AtenTensorHandle* ret1) {
  return Guarded(
      [&] { aoti::slim::CumulativeExtreme(*self, dim, aoti::slim::Which::kMin, ret0, ret1); });
}

AOTITorchError aoti_torch_cpu_logcumsumexp(AtenTensorHandle self, int64_t dim,
                                           AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::LogCumSumExp(*self, dim).release(); });
}

}  // extern "C"
