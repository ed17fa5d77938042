// Max and average pooling with windows of a fixed size.

#include "runtime/slim/ops/pooling.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory_format.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

struct Windows {
  Windows(const char* op, Ints kernel_size, Ints stride_list, Ints padding_list, Ints dilation_list,
          bool ceil, int rank)
      : name(op),
        dims(rank),
        kernel(op, "kernel_size", kernel_size, rank, 1),
        stride(op, "stride", stride_list.empty() ? kernel_size : stride_list, rank, 1),
        padding(op, "padding", padding_list, rank, 0),
        dilation(op, "dilation", dilation_list, rank, 1),
        ceil_mode(ceil) {
    for (int d = 0; d < 3; ++d) {
      const std::int64_t size = kernel.values[d];
      // This limit, which PyTorch has too, keeps the sums and products below from overflowing.
      for (const PoolNumbers* numbers : {&kernel, &stride, &padding, &dilation}) {
        Require(numbers->values[d] <= std::numeric_limits<std::int32_t>::max(), name,
                ": a window that covers or steps over ", numbers->values[d],
                " positions is too large");
      }
      Require(size > 0, name, ": kernel_size is ", size, ", must be positive");
      Require(stride.values[d] > 0, name, ": stride is ", stride.values[d], ", must be positive");
      Require(dilation.values[d] > 0, name, ": dilation is ", dilation.values[d],
              ", must be positive");
      Require(!__builtin_mul_overflow(size - 1, dilation.values[d], &reach[d]), name,
              ": the window is too large");
      Require(padding.values[d] >= 0 && padding.values[d] <= reach[d] / 2 + (reach[d] % 2 != 0),
              name, ": padding is ", padding.values[d], ", must be at most half of the window's ",
              reach[d] + 1, " positions");
    }
  }

  std::int64_t OutputSize(int d, std::int64_t input) const {
    const std::int64_t step = stride.values[d];
    const std::int64_t room = input + 2 * padding.values[d] - reach[d] - 1;
    std::int64_t size = room < 0 && !ceil_mode ? 0 : (room + (ceil_mode ? step - 1 : 0)) / step + 1;
    if (room + (ceil_mode ? step - 1 : 0) < 0) size = 0;
    // A window must begin in the image or in the padding before it.
    if (ceil_mode && (size - 1) * step >= input + padding.values[d]) --size;
    Require(size > 0, name, ": the window covers ", reach[d] + 1, " positions, more than the ",
            input + 2 * padding.values[d], " of the padded input");
    return size;
  }

  const char* name;
  int dims;
  PoolNumbers kernel, stride, padding, dilation;
  std::int64_t reach[3];
  bool ceil_mode;
};

struct Pooled {
  Pooled(const Windows& windows, const Tensor& self) : in(windows.name, self, windows.dims) {
    for (int d = 1; d < 5; ++d) {
      Require(in.sizes[d] > 0, windows.name, ": the input has no elements besides the batch");
    }
    for (int d = 0; d < 3; ++d) out[d] = windows.OutputSize(d, in.sizes[d + 2]);
  }
  PoolShape in;
  std::int64_t out[3];
};

void MaxPool(const Windows& windows, const Tensor& self, AtenTensorHandle* values,
             AtenTensorHandle* indices) {
  const Pooled pooled(windows, self);
  const PoolShape& in = pooled.in;
  const bool channels_last = in.batched && LooksChannelsLast(self);
  TensorPtr result = EmptyPooled(in, self.dtype(), pooled.out, windows.dims, channels_last);
  TensorPtr at = EmptyPooled(in, ScalarType::kInt64, pooled.out, windows.dims, channels_last);
  PoolRanges ranges(pooled.out);
  for (int d = 0; d < 3; ++d) {
    const std::int64_t step = windows.dilation.values[d];
    for (std::int64_t o = 0; o < pooled.out[d]; ++o) {
      const std::int64_t start = o * windows.stride.values[d] - windows.padding.values[d];
      const std::int64_t first = start < 0 ? start + (-start + step - 1) / step * step : start;
      ranges.at(d, o) = {first, std::min(start + windows.reach[d] + 1, in.sizes[d + 2]), step, 0};
    }
  }
  const PoolShape out(windows.name, *result, windows.dims);
  Require(self.dtype() != ScalarType::kBool, windows.name, ": dtype bool is not supported");
  DispatchReal(self.dtype(), [&]<typename T>() {
    ForEachPoolRow(in, out, [&](auto... row) {
      MaxPoolRow(in, self.data<T>(), out, result->data<T>(), at->data<std::int64_t>(), ranges,
                 row...);
    });
  });
  *values = result.release();
  *indices = at.release();
}

TensorPtr AveragePool(const Windows& windows, const Tensor& self, bool count_padding,
                      const std::int64_t* divisor) {
  Require(divisor == nullptr || *divisor != 0, windows.name, ": divisor_override is 0");
  Require(IsFloating(self.dtype()) || self.dtype() == ScalarType::kInt64, windows.name, ": dtype ",
          NameOf(self.dtype()), " is not supported, must be int64 or floating-point");
  const Pooled pooled(windows, self);
  const PoolShape& in = pooled.in;
  // PyTorch's average pooling in 3d always returns contiguous results.
  const bool channels_last = windows.dims == 2 && in.batched && LooksChannelsLast(self);
  TensorPtr result = EmptyPooled(in, self.dtype(), pooled.out, windows.dims, channels_last);
  PoolRanges ranges(pooled.out);
  for (int d = 0; d < 3; ++d) {
    const std::int64_t size = in.sizes[d + 2];
    const std::int64_t padding = windows.padding.values[d];
    for (std::int64_t o = 0; o < pooled.out[d]; ++o) {
      const std::int64_t start = o * windows.stride.values[d] - padding;
      const std::int64_t stop = std::min(start + windows.kernel.values[d], size + padding);
      const std::int64_t first = std::max<std::int64_t>(start, 0);
      const std::int64_t last = std::min(stop, size);
      ranges.at(d, o) = {first, last, 1,
                         count_padding ? stop - start : std::max<std::int64_t>(last - first, 0)};
    }
  }
  const PoolShape out(windows.name, *result, windows.dims);
  DispatchReal(self.dtype(), [&]<typename T>() {
    ForEachPoolRow(in, out, [&](auto... row) {
      AveragePoolRow(in, self.data<T>(), out, result->data<T>(), ranges,
                     divisor == nullptr ? 0 : *divisor, row...);
    });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

#define AOTI_SLIM_MAX_POOL(dims)                                                                 \
  AOTITorchError aoti_torch_cpu_max_pool##dims##d_with_indices(                                  \
      AtenTensorHandle self, const int64_t* kernel_size, int64_t kernel_size_len_,               \
      const int64_t* stride, int64_t stride_len_, const int64_t* padding, int64_t padding_len_,  \
      const int64_t* dilation, int64_t dilation_len_, int32_t ceil_mode, AtenTensorHandle* ret0, \
      AtenTensorHandle* ret1) {                                                                  \
    return Guarded([&] {                                                                         \
      MaxPool(                                                                                   \
          {"max_pool" #dims "d", List(kernel_size, kernel_size_len_), List(stride, stride_len_), \
           List(padding, padding_len_), List(dilation, dilation_len_), ceil_mode != 0, dims},    \
          *self, ret0, ret1);                                                                    \
    });                                                                                          \
  }

#define AOTI_SLIM_AVERAGE_POOL(dims)                                                               \
  AOTITorchError aoti_torch_cpu_avg_pool##dims##d(                                                 \
      AtenTensorHandle self, const int64_t* kernel_size, int64_t kernel_size_len_,                 \
      const int64_t* stride, int64_t stride_len_, const int64_t* padding, int64_t padding_len_,    \
      int32_t ceil_mode, int32_t count_include_pad, int64_t* divisor_override,                     \
      AtenTensorHandle* ret0) {                                                                    \
    return Guarded([&] {                                                                           \
      constexpr std::int64_t one = 1;                                                              \
      const Windows windows("avg_pool" #dims "d", List(kernel_size, kernel_size_len_),             \
                            List(stride, stride_len_), List(padding, padding_len_), List(&one, 1), \
                            ceil_mode != 0, dims);                                                 \
      *ret0 = AveragePool(windows, *self, count_include_pad != 0, divisor_override).release();     \
    });                                                                                            \
  }

extern "C" {
AOTI_SLIM_MAX_POOL(2)
AOTI_SLIM_MAX_POOL(3)
AOTI_SLIM_AVERAGE_POOL(2)
AOTI_SLIM_AVERAGE_POOL(3)
}  // extern "C"
