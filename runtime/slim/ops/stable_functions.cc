// The functions of the C ABI with which PyTorch's stable C++ API calls operators, and its threads.

#include <algorithm>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/pointwise.h"
#include "runtime/slim/ops/reduce.h"
#include "runtime/slim/tensor/tensor.h"

using namespace aoti::slim;  // NOLINT: the C ABI's functions are global

namespace {

Ints Span(const std::int64_t* values, std::int64_t count) {
  return {values, static_cast<std::size_t>(count)};
}

ScalarType DTypeOr(const std::int32_t* dtype, ScalarType otherwise) {
  return dtype == nullptr ? otherwise : static_cast<ScalarType>(*dtype);
}

}  // namespace

extern "C" {

AOTITorchError aoti_torch_aten_amax(AtenTensorHandle self, const int64_t* dim, int64_t dim_len_,
                                    int32_t keepdim, AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = LargestOfReal(*self, Span(dim, dim_len_), keepdim != 0).release(); });
}

AOTITorchError aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value) {
  return aoti_torch_cpu_fill__Scalar(self, value);
}

AOTITorchError aoti_torch_aten_full(const int64_t* size, int64_t size_len_, double fill_value,
                                    int32_t* dtype, int32_t*, int32_t*, int32_t, int32_t*,
                                    AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr out = Empty(DTypeOr(dtype, ScalarType::kFloat32), Span(size, size_len_));
    Require(aoti_torch_cpu_fill__Scalar(out.get(), fill_value) == AOTI_TORCH_SUCCESS,
            "full: ", NameOf(out->dtype()), " can't be filled");
    *ret0 = out.release();
  });
}

AOTITorchError aoti_torch_aten_narrow(AtenTensorHandle self, int64_t dim, int64_t start,
                                      int64_t length, AtenTensorHandle* ret0) {
  return aoti_torch_cpu_narrow(self, dim, start, length, ret0);
}

AOTITorchError aoti_torch_aten_new_empty(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len_, int32_t* dtype, int32_t*, int32_t*,
                                         int32_t, int32_t*, AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = Empty(DTypeOr(dtype, self->dtype()), Span(size, size_len_)).release(); });
}

AOTITorchError aoti_torch_aten_new_zeros(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len_, int32_t* dtype, int32_t*, int32_t*,
                                         int32_t, int32_t*, AtenTensorHandle* ret0) {
  return Guarded([&] {
    TensorPtr out = Empty(DTypeOr(dtype, self->dtype()), Span(size, size_len_));
    Require(aoti_torch_zero_(out.get()) == AOTI_TORCH_SUCCESS, "new_zeros: it can't be filled");
    *ret0 = out.release();
  });
}

AOTITorchError aoti_torch_aten_pad(AtenTensorHandle self, const int64_t* pad, int64_t pad_len_,
                                   const char* mode, double* value, AtenTensorHandle* ret0) {
  return aoti_torch_cpu_pad(self, pad, pad_len_, mode, value, ret0);
}

AOTITorchError aoti_torch_aten_subtract_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                               double alpha, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const ScalarType dtype = ResultType(*self, *other);
    Require(!IsComplex(dtype), "subtract: complex tensors are not supported");
    // In double, or exactly for integers, which wrap around.
    const auto compute = [&]<typename T>(ScalarType wide, auto subtract) {
      const TensorPtr a = As(*self, wide), b = As(*other, wide);
      const TensorPtr out = Empty(wide, BroadcastSizes(a->sizes(), b->sizes()));
      Map2<T>(*out, *a, *b, subtract);
      *ret0 = As(*out, dtype).release();
    };
    if (IsFloating(dtype)) {
      compute.operator()<double>(ScalarType::kFloat64,
                                 [&](double x, double y) { return x - alpha * y; });
    } else {
      const TensorPtr times = FromDouble(alpha, ScalarType::kInt64);
      const auto factor = static_cast<std::uint64_t>(*times->data<std::int64_t>());
      compute.operator()<std::int64_t>(ScalarType::kInt64, [&](std::int64_t x, std::int64_t y) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) -
                                         factor * static_cast<std::uint64_t>(y));
      });
    }
  });
}

AOTITorchError torch_get_num_threads(uint32_t* out_num_threads) {
  *out_num_threads = static_cast<uint32_t>(aoti::internal::MaxThreads());
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain_size, ParallelFunc func,
                                  void* ctx) {
  return Guarded([&] {
    aoti::internal::ParallelFor(
        begin, end, std::max<int64_t>(grain_size, 1),
        [&](std::int64_t first, std::int64_t last) { func(first, last, ctx); });
  });
}

}  // extern "C"
