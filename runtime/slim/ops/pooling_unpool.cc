// The partial inverse of max pooling: each value is written to the position that its index names.

#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/pooling.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

TensorPtr Unpool(const char* name, const Tensor& self, const Tensor& indices, Ints output_size,
                 int dims) {
  Require(indices.dtype() == ScalarType::kInt64, name, ": indices are ", NameOf(indices.dtype()),
          ", must be int64");
  Require(output_size.size() == static_cast<std::size_t>(dims), name, ": output_size has ",
          output_size.size(), " numbers, must have ", dims);
  const PoolShape in(name, self, dims);
  Require(indices.rank() == self.rank(), name, ": indices have ", indices.rank(),
          " dims, must have as many as the input: ", self.rank());
  const PoolShape at(name, indices, dims);
  const PoolNumbers size(name, "output_size", output_size, dims, 1);
  for (int d = 0; d < 5; ++d) {
    Require(in.sizes[d] == at.sizes[d], name, ": indices must be of the input's size");
    Require(d == 0 || in.sizes[d] > 0, name, ": the input has no elements besides the batch");
    Require(d < 2 || size.values[d - 2] >= 0, name, ": output_size must not be negative");
  }
  TensorPtr result = EmptyPooled(in, self.dtype(), size.values, dims, false);
  const std::int64_t volume =
      CheckedProduct(CheckedProduct(size.values[0], size.values[1]), size.values[2]);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    const T* from = self.data<T>();
    const std::int64_t* index = indices.data<std::int64_t>();
    internal::ParallelFor(
        0, in.sizes[0] * in.sizes[1], 1, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t plane = first; plane < last; ++plane) {
            T* to = result->data<T>() + plane * volume;
            std::fill_n(to, volume, T(0));
            const std::int64_t n = plane / in.sizes[1];
            const std::int64_t channel = plane % in.sizes[1];
            const std::int64_t base = n * in.strides[0] + channel * in.strides[1];
            const std::int64_t index_base = n * at.strides[0] + channel * at.strides[1];
            for (std::int64_t z = 0; z < in.sizes[2]; ++z) {
              for (std::int64_t y = 0; y < in.sizes[3]; ++y) {
                for (std::int64_t x = 0; x < in.sizes[4]; ++x) {
                  const std::int64_t i =
                      index[index_base + z * at.strides[2] + y * at.strides[3] + x * at.strides[4]];
                  Require(i >= 0 && i < volume, name, ": index ", i, " is out of range 0..",
                          volume - 1);
                  to[i] = from[base + z * in.strides[2] + y * in.strides[3] + x * in.strides[4]];
                }
              }
            }
          }
        });
  });
  return result;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu_max_unpool2d(AtenTensorHandle self, AtenTensorHandle indices,
                                           const int64_t* output_size, int64_t output_size_len_,
                                           AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Ints size(output_size, static_cast<std::size_t>(output_size_len_));
    *ret0 = Unpool("max_unpool2d", *self, *indices, size, 2).release();
  });
}

// stride and padding are ignored: they describe how the indices were made, and output_size is
// enough.
AOTITorchError aoti_torch_cpu_max_unpool3d(AtenTensorHandle self, AtenTensorHandle indices,
                                           const int64_t* output_size, int64_t output_size_len_,
                                           const int64_t* /*stride*/, int64_t /*stride_len_*/,
                                           const int64_t* /*padding*/, int64_t /*padding_len_*/,
                                           AtenTensorHandle* ret0) {
  return Guarded([&] {
    const Ints size(output_size, static_cast<std::size_t>(output_size_len_));
    *ret0 = Unpool("max_unpool3d", *self, *indices, size, 3).release();
  });
}

}  // extern "C"
