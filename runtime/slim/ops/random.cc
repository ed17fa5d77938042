// Random numbers: the same ones, in the same order, as PyTorch's for the same seed.
//
// There is one exception: on Intel CPUs, PyTorch's bernoulli with a single probability (and so
// dropout) uses MKL. Here it gives the numbers that PyTorch gives on other CPUs.

#include <algorithm>
#include <limits>
#include <mutex>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/math/generator.h"
#include "runtime/slim/ops/random_fill.h"
#include "runtime/slim/tensor/device.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Generated code passes no other generator than the default one.
Generator& Chosen(AtenGeneratorHandle* generator) {
  Require(generator == nullptr || *generator == nullptr,
          "random numbers: only the default generator is supported");
  return Generator::Default();
}

ScalarType Or(const int32_t* dtype, ScalarType otherwise) {
  return dtype == nullptr ? otherwise : static_cast<ScalarType>(*dtype);
}

TensorPtr Sized(const int64_t* size, int64_t rank, const int32_t* dtype, ScalarType otherwise) {
  return Empty(Or(dtype, otherwise), Ints(size, static_cast<std::size_t>(rank)));
}

// An empty result of *_like: in the requested memory format, or with the order of self's dims.
TensorPtr Like(const Tensor& self, const int32_t* dtype, const int32_t* memory_format) {
  enum : int32_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };
  const ScalarType type = Or(dtype, self.dtype());
  const int32_t format = memory_format == nullptr ? kPreserve : *memory_format;
  if (format == kPreserve) return EmptyLike(self, type);
  if (format == kContiguous) return Empty(type, self.sizes());
  const std::int64_t rank = format == kChannelsLast ? 4 : 5;
  Require((format == kChannelsLast || format == kChannelsLast3d) && self.rank() == rank,
          "memory format ", format, " is not possible for a tensor with ", self.rank(), " dims");
  std::int64_t strides[5];
  std::int64_t stride = self.size(1);
  strides[1] = 1;
  for (std::int64_t dim = rank - 1; dim > 1; --dim) {
    strides[dim] = stride;
    stride *= std::max<std::int64_t>(self.size(dim), 1);
  }
  strides[0] = stride;
  return EmptyStrided(type, self.sizes(), Ints(strides, static_cast<std::size_t>(rank)));
}

TensorPtr RandomPermutation(std::int64_t size, ScalarType dtype, Generator& generator) {
  Require(size >= 0, "randperm: n is ", size, ", must not be negative");
  TensorPtr result = Empty(dtype, {size});
  DispatchReal(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      Require(size == 0 || static_cast<std::uint64_t>(size - 1) <=
                               static_cast<std::uint64_t>(std::numeric_limits<T>::max()),
              "randperm: ", size - 1, " doesn't fit into ", NameOf(dtype));
    }
    T* values = result->data<T>();
    for (std::int64_t i = 0; i < size; ++i) values[i] = static_cast<T>(i);
    const bool small = size < std::numeric_limits<std::uint32_t>::max() / 20;
    const std::lock_guard lock(generator.mutex());
    for (std::int64_t i = 0; i < size - 1; ++i) {
      const std::uint64_t bits = small ? generator.Random() : generator.Random64();
      const auto step = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(size - i));
      std::swap(values[i], values[i + step]);
    }
  });
  return result;
}

void Dropout(const Tensor& input, double p, bool train, TensorPtr* output, TensorPtr* mask) {
  Require(p >= 0 && p <= 1, "dropout: p is ", p, ", must be in 0..1");
  Require(!train || IsFloating(input.dtype()), "dropout: the input is ", NameOf(input.dtype()),
          ", must be a floating-point dtype");
  *output = EmptyLike(input);
  if (input.numel() == 0) {  // as in PyTorch, the mask then has the input's dtype
    *mask = EmptyLike(input);
    return;
  }
  *mask = EmptyLike(input, ScalarType::kBool);
  Copy(**output, input);
  const std::int64_t size = input.numel();
  bool* keep = (*mask)->data<bool>();
  if (!train) {
    std::fill_n(keep, size, true);
    return;
  }
  FillBernoulli(**mask, 1 - p, Generator::Default());
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  // Both results are dense and have the same layout.
  DispatchFloating(input.dtype(), [&]<typename T>() {
    using Wide = Accumulator<T>;
    T* values = (*output)->data<T>();
    const Wide factor{static_cast<T>(scale)};
    for (std::int64_t i = 0; i < size; ++i) {
      const T kept = static_cast<T>(Wide(values[i]) * Wide(keep[i] ? 1 : 0));
      values[i] = static_cast<T>(Wide(kept) * factor);
    }
  });
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu_bernoulli__Tensor(AtenTensorHandle self, AtenTensorHandle p,
                                                AtenGeneratorHandle* generator) {
  return Guarded([&] { FillBernoulli(*self, *p, Chosen(generator)); });
}

AOTITorchError aoti_torch_cpu_bernoulli__float(AtenTensorHandle self, double p,
                                               AtenGeneratorHandle* generator) {
  return Guarded([&] { FillBernoulli(*self, p, Chosen(generator)); });
}

AOTITorchError aoti_torch_cpu_exponential(AtenTensorHandle self, double lambd,
                                          AtenGeneratorHandle* generator, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = EmptyLike(*self);
    FillExponential(*result, lambd, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_normal_functional(AtenTensorHandle self, double mean, double std,
                                                AtenGeneratorHandle* generator,
                                                AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = EmptyLike(*self);
    FillNormal(*result, mean, std, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_uniform(AtenTensorHandle self, double from, double to,
                                      AtenGeneratorHandle* generator, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = EmptyLike(*self);
    FillUniform(*result, from, to, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_native_dropout(AtenTensorHandle input, double p, int32_t* train,
                                             AtenTensorHandle* ret0, AtenTensorHandle* ret1) {
  return Guarded([&] {
    TensorPtr output, mask;
    Dropout(*input, p, train == nullptr || *train != 0, &output, &mask);
    *ret0 = output.release();
    *ret1 = mask.release();
  });
}

AOTITorchError aoti_torch_cpu_rand_generator(const int64_t* size, int64_t size_len_,
                                             AtenGeneratorHandle* generator, int32_t* dtype,
                                             int32_t*, int32_t*, int32_t, int32_t*,
                                             AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Sized(size, size_len_, dtype, ScalarType::kFloat32);
    FillUniform(*result, 0, 1, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_rand(const int64_t* size, int64_t size_len_, int32_t* dtype,
                                   int32_t* layout, int32_t* device, int32_t device_index_,
                                   int32_t* pin_memory, AtenTensorHandle* ret0) {
  return aoti_torch_cpu_rand_generator(size, size_len_, nullptr, dtype, layout, device,
                                       device_index_, pin_memory, ret0);
}

AOTITorchError aoti_torch_cpu_rand_like_generator(AtenTensorHandle self,
                                                  AtenGeneratorHandle* generator, int32_t* dtype,
                                                  int32_t*, int32_t*, int32_t, int32_t*,
                                                  int32_t* memory_format, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Like(*self, dtype, memory_format);
    FillUniform(*result, 0, 1, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_rand_like(AtenTensorHandle self, int32_t* dtype, int32_t* layout,
                                        int32_t* device, int32_t device_index_, int32_t* pin_memory,
                                        int32_t* memory_format, AtenTensorHandle* ret0) {
  return aoti_torch_cpu_rand_like_generator(self, nullptr, dtype, layout, device, device_index_,
                                            pin_memory, memory_format, ret0);
}

AOTITorchError aoti_torch_cpu_randn_generator(const int64_t* size, int64_t size_len_,
                                              AtenGeneratorHandle* generator, int32_t* dtype,
                                              int32_t*, int32_t*, int32_t, int32_t*,
                                              AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Sized(size, size_len_, dtype, ScalarType::kFloat32);
    FillNormal(*result, 0, 1, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_randn(const int64_t* size, int64_t size_len_, int32_t* dtype,
                                    int32_t* layout, int32_t* device, int32_t device_index_,
                                    int32_t* pin_memory, AtenTensorHandle* ret0) {
  return aoti_torch_cpu_randn_generator(size, size_len_, nullptr, dtype, layout, device,
                                        device_index_, pin_memory, ret0);
}

AOTITorchError aoti_torch_cpu_randn_like_generator(AtenTensorHandle self,
                                                   AtenGeneratorHandle* generator, int32_t* dtype,
                                                   int32_t*, int32_t*, int32_t, int32_t*,
                                                   int32_t* memory_format, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Like(*self, dtype, memory_format);
    FillNormal(*result, 0, 1, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_randn_like(AtenTensorHandle self, int32_t* dtype, int32_t* layout,
                                         int32_t* device, int32_t device_index_,
                                         int32_t* pin_memory, int32_t* memory_format,
                                         AtenTensorHandle* ret0) {
  return aoti_torch_cpu_randn_like_generator(self, nullptr, dtype, layout, device, device_index_,
                                             pin_memory, memory_format, ret0);
}

AOTITorchError aoti_torch_cpu_randint_generator(int64_t high, const int64_t* size,
                                                int64_t size_len_, AtenGeneratorHandle* generator,
                                                int32_t* dtype, int32_t*, int32_t*, int32_t,
                                                int32_t*, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Sized(size, size_len_, dtype, ScalarType::kInt64);
    FillIntegers(*result, 0, high, Chosen(generator));
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_randint(int64_t high, const int64_t* size, int64_t size_len_,
                                      int32_t* dtype, int32_t* layout, int32_t* device,
                                      int32_t device_index_, int32_t* pin_memory,
                                      AtenTensorHandle* ret0) {
  return aoti_torch_cpu_randint_generator(high, size, size_len_, nullptr, dtype, layout, device,
                                          device_index_, pin_memory, ret0);
}

AOTITorchError aoti_torch_cpu_randint_low(int64_t low, int64_t high, const int64_t* size,
                                          int64_t size_len_, int32_t* dtype, int32_t*, int32_t*,
                                          int32_t, int32_t*, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Sized(size, size_len_, dtype, ScalarType::kInt64);
    FillIntegers(*result, low, high, Generator::Default());
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_randint_low_out(AtenTensorHandle out, int64_t low, int64_t high,
                                              const int64_t* size, int64_t size_len_) {
  return Guarded([&] {
    Require(std::ranges::equal(out->sizes(), Ints(size, static_cast<std::size_t>(size_len_))),
            "randint: the result does not have the requested size");
    // Programs for CUDA draw seeds here, and every replay of a graph would use the same ones.
    Require(!IsRecording(), "randint: random numbers can't be recorded for a CUDA graph");
    FillIntegers(*out, low, high, Generator::Default());
  });
}

AOTITorchError aoti_torch_cpu_randint_like_low_dtype(AtenTensorHandle self, int64_t low,
                                                     int64_t high, int32_t* dtype, int32_t*,
                                                     int32_t*, int32_t, int32_t*,
                                                     int32_t* memory_format,
                                                     AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr result = Like(*self, dtype, memory_format);
    FillIntegers(*result, low, high, Generator::Default());
    *ret0 = result.release();
  });
}

AOTITorchError aoti_torch_cpu_randint_like(AtenTensorHandle self, int64_t high, int32_t* dtype,
                                           int32_t* layout, int32_t* device, int32_t device_index_,
                                           int32_t* pin_memory, int32_t* memory_format,
                                           AtenTensorHandle* ret0) {
  return aoti_torch_cpu_randint_like_low_dtype(self, 0, high, dtype, layout, device, device_index_,
                                               pin_memory, memory_format, ret0);
}

AOTITorchError aoti_torch_cpu_randperm(int64_t n, int32_t* dtype, int32_t*, int32_t*, int32_t,
                                       int32_t*, AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 = RandomPermutation(n, Or(dtype, ScalarType::kInt64), Generator::Default()).release();
  });
}

}  // extern "C"
