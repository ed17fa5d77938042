// Adaptive pooling, whose windows differ by at most one in size, and fractional max pooling, whose
// windows are random.

#include <algorithm>
#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/pooling.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory_format.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

void FillAdaptive(const PoolShape& in, const std::int64_t (&out)[3], PoolRanges& ranges) {
  for (int d = 0; d < 3; ++d) {
    const std::int64_t size = in.sizes[d + 2];
    for (std::int64_t o = 0; o < out[d]; ++o) {
      // o * size / out[d] and ceil((o + 1) * size / out[d]), computed without overflow.
      const std::int64_t whole = size / out[d];
      const std::int64_t rest = size % out[d];
      const std::int64_t begin = o * whole + o * rest / out[d];
      const std::int64_t end = (o + 1) * whole + ((o + 1) * rest + out[d] - 1) / out[d];
      ranges.at(d, o) = {begin, end, 1, end - begin};
    }
  }
}

struct Sizes {
  Sizes(const char* name, Ints output_size, int dims)
      : numbers(name, "output_size", output_size, dims, 1) {
    for (int d = 0; d < 3; ++d) {
      Require(numbers.values[d] >= 0, name, ": output_size is ", numbers.values[d],
              ", must not be negative");
    }
  }
  PoolNumbers numbers;
};

void RequireElements(const char* name, const PoolShape& in, int first) {
  for (int d = first; d < 5; ++d) {
    Require(in.sizes[d] > 0, name, ": the input has no elements besides the batch");
  }
}

TensorPtr AdaptiveAverage(const char* name, const Tensor& self, Ints output_size, int dims) {
  const Sizes sizes(name, output_size, dims);
  const auto& out_sizes = sizes.numbers.values;
  const PoolShape in(name, self, dims);
  RequireElements(name, in, 2);
  const bool channels_last = dims == 2 && in.batched && LooksChannelsLast(self);
  TensorPtr result = EmptyPooled(in, self.dtype(), out_sizes, dims, channels_last);
  const PoolShape out(name, *result, dims);
  PoolRanges ranges(out_sizes);
  FillAdaptive(in, out_sizes, ranges);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    ForEachPoolRow(in, out, [&](auto... row) {
      AveragePoolRow(in, self.data<T>(), out, result->data<T>(), ranges, 0, row...);
    });
  });
  return result;
}

void AdaptiveMax(const char* name, const Tensor& self, Ints output_size, int dims,
                 AtenTensorHandle* values, AtenTensorHandle* indices) {
  const Sizes sizes(name, output_size, dims);
  const auto& out_sizes = sizes.numbers.values;
  const PoolShape in(name, self, dims);
  RequireElements(name, in, 1);
  const bool channels_last = dims == 2 && in.batched && LooksChannelsLast(self);
  TensorPtr result = EmptyPooled(in, self.dtype(), out_sizes, dims, channels_last);
  TensorPtr at = EmptyPooled(in, ScalarType::kInt64, out_sizes, dims, channels_last);
  const PoolShape out(name, *result, dims);
  PoolRanges ranges(out_sizes);
  FillAdaptive(in, out_sizes, ranges);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    ForEachPoolRow(in, out, [&](auto... row) {
      MaxPoolRow(in, self.data<T>(), out, result->data<T>(), at->data<std::int64_t>(), ranges,
                 row...);
    });
  });
  *values = result.release();
  *indices = at.release();
}

// The windows of one channel's image along one dim; `sample`, in 0..1, shifts their beginnings.
template <typename T>
void FillRandom(PoolRanges& ranges, int d, std::int64_t input, std::int64_t output,
                std::int64_t window, T sample) {
  if (output > 1) {
    // With the precision of T, as in PyTorch: it determines the windows of 16-bit images.
    const T alpha = static_cast<T>(input - window) / static_cast<T>(output - 1);
    const auto first = static_cast<std::int64_t>(sample * alpha);
    for (std::int64_t o = 0; o + 1 < output; ++o) {
      const auto at = static_cast<std::int64_t>((static_cast<T>(o) + sample) * alpha);
      // Rounding may move the window beyond the last position.
      const std::int64_t begin = std::min(at - first, input - window);
      ranges.at(d, o) = {begin, begin + window, 1, window};
    }
  }
  if (output > 0) ranges.at(d, output - 1) = {input - window, input, 1, window};
}

void FractionalMax(const char* name, const Tensor& self, Ints kernel_size, Ints output_size,
                   const Tensor& samples, int dims, AtenTensorHandle* values,
                   AtenTensorHandle* indices) {
  const PoolNumbers kernel(name, "kernel_size", kernel_size, dims, 1);
  const Sizes sizes(name, output_size, dims);
  const auto& out_sizes = sizes.numbers.values;
  const PoolShape in(name, self, dims);
  RequireElements(name, in, 1);
  for (int d = 0; d < 3; ++d) {
    const std::int64_t input = in.sizes[d + 2];
    const std::int64_t window = kernel.values[d];
    Require(window > 0 && window <= input && out_sizes[d] <= input - window + 1, name,
            ": windows of ", window, " positions do not fit ", out_sizes[d], " times into ", input);
  }
  Require(samples.dtype() == self.dtype(), name, ": random_samples are ", NameOf(samples.dtype()),
          ", must be ", NameOf(self.dtype()));
  Require(samples.rank() == 3 && samples.size(0) == in.sizes[0] && samples.size(1) == in.sizes[1] &&
              samples.size(2) == dims,
          name, ": random_samples must be of size [", in.sizes[0], ", ", in.sizes[1], ", ", dims,
          "]");
  TensorPtr result = EmptyPooled(in, self.dtype(), out_sizes, dims, false);
  TensorPtr at = EmptyPooled(in, ScalarType::kInt64, out_sizes, dims, false);
  const PoolShape out(name, *result, dims);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    const std::int64_t planes = in.sizes[0] * in.sizes[1];
    internal::ParallelFor(0, planes, 1, [&](std::int64_t first, std::int64_t last) {
      PoolRanges ranges(out_sizes);
      for (std::int64_t plane = first; plane < last; ++plane) {
        const std::int64_t n = plane / in.sizes[1];
        const std::int64_t channel = plane % in.sizes[1];
        const T* sample = samples.data<T>() + n * samples.stride(0) + channel * samples.stride(1);
        for (int d = 0; d < 3; ++d) {
          // In 2d the first sample is for the width; in 3d the first sample is for the depth.
          const int own = dims == 2 ? 2 - d : d;
          const T shift = d < 3 - dims ? T(0) : sample[own * samples.stride(2)];
          Require(shift >= 0 && shift <= 1, name, ": random_samples must be in 0..1, one is ",
                  static_cast<double>(shift));
          FillRandom(ranges, d, in.sizes[d + 2], out_sizes[d], kernel.values[d], shift);
        }
        for (std::int64_t z = 0; z < out_sizes[0]; ++z) {
          for (std::int64_t y = 0; y < out_sizes[1]; ++y) {
            MaxPoolRow(in, self.data<T>(), out, result->data<T>(), at->data<std::int64_t>(), ranges,
                       n, channel, 1, z, y);
          }
        }
      }
    });
  });
  *values = result.release();
  *indices = at.release();
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

#define AOTI_SLIM_ADAPTIVE_POOL(dims)                                                              \
  AOTITorchError aoti_torch_cpu__adaptive_avg_pool##dims##d(                                       \
      AtenTensorHandle self, const int64_t* output_size, int64_t output_size_len_,                 \
      AtenTensorHandle* ret0) {                                                                    \
    return Guarded([&] {                                                                           \
      *ret0 = AdaptiveAverage("adaptive_avg_pool" #dims "d", *self,                                \
                              List(output_size, output_size_len_), dims)                           \
                  .release();                                                                      \
    });                                                                                            \
  }                                                                                                \
  AOTITorchError aoti_torch_cpu_adaptive_max_pool##dims##d(                                        \
      AtenTensorHandle self, const int64_t* output_size, int64_t output_size_len_,                 \
      AtenTensorHandle* ret0, AtenTensorHandle* ret1) {                                            \
    return Guarded([&] {                                                                           \
      AdaptiveMax("adaptive_max_pool" #dims "d", *self, List(output_size, output_size_len_), dims, \
                  ret0, ret1);                                                                     \
    });                                                                                            \
  }                                                                                                \
  AOTITorchError aoti_torch_cpu_fractional_max_pool##dims##d(                                      \
      AtenTensorHandle self, const int64_t* kernel_size, int64_t kernel_size_len_,                 \
      const int64_t* output_size, int64_t output_size_len_, AtenTensorHandle random_samples,       \
      AtenTensorHandle* ret0, AtenTensorHandle* ret1) {                                            \
    return Guarded([&] {                                                                           \
      FractionalMax("fractional_max_pool" #dims "d", *self, List(kernel_size, kernel_size_len_),   \
                    List(output_size, output_size_len_), *random_samples, dims, ret0, ret1);       \
    });                                                                                            \
  }

extern "C" {
AOTI_SLIM_ADAPTIVE_POOL(2)
AOTI_SLIM_ADAPTIVE_POOL(3)
}  // extern "C"
