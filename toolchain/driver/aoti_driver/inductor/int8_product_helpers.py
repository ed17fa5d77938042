"""The C++ functions with which generated code calls the operator of int8_product.py."""

from __future__ import annotations

# Inserted before a wrapper that calls them. The slim runtime has the operator; on libtorch,
# PyTorch's `_int_mm` and the kernel below compute it.
WRAPPER_HELPERS = """\
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include <cstdint>

#ifdef AOTI_SLIM
extern "C" AOTITorchError aoti_slim_int8_product(AtenTensorHandle a, AtenTensorHandle weight,
                                                 AtenTensorHandle steps, AtenTensorHandle scales,
                                                 AtenTensorHandle bias, int32_t activation,
                                                 AtenTensorHandle* ret0);
#else
extern "C" void cpp_int8_product(float* out, const int32_t* sums, const float* steps,
                                 const float* scales, const float* bias, int64_t rows,
                                 int64_t columns, int32_t activation);
#endif

namespace aoti_int8 {
namespace {

using ::torch::aot_inductor::RAIIAtenTensorHandle;

#ifdef AOTI_SLIM
RAIIAtenTensorHandle Product(AtenTensorHandle a, AtenTensorHandle weight, AtenTensorHandle steps,
                             AtenTensorHandle scales, AtenTensorHandle bias, int32_t activation) {
  AtenTensorHandle result = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(
      aoti_slim_int8_product(a, weight, steps, scales, bias, activation, &result));
  return RAIIAtenTensorHandle(result);
}
#else
RAIIAtenTensorHandle EmptyMatrix(int64_t rows, int64_t columns, int32_t dtype) {
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
  AtenTensorHandle raw = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, sizes, strides, dtype,
                                                       aoti_torch_device_type_cpu(), 0, &raw));
  return RAIIAtenTensorHandle(raw);
}

template <typename T>
T* Data(AtenTensorHandle tensor) {
  void* address = nullptr;
  if (tensor != nullptr) AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &address));
  return static_cast<T*>(address);
}

RAIIAtenTensorHandle Product(AtenTensorHandle a, AtenTensorHandle weight, AtenTensorHandle steps,
                             AtenTensorHandle scales, AtenTensorHandle bias, int32_t activation) {
  int64_t *left = nullptr, *right = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(a, &left));
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(weight, &right));
  const int64_t rows = left[0], depth = left[1], columns = right[0];
  const int64_t sizes[] = {depth, columns}, strides[] = {1, depth};
  AtenTensorHandle raw = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(weight, 2, sizes, strides, 0, &raw));
  RAIIAtenTensorHandle turned(raw);
  RAIIAtenTensorHandle sums = EmptyMatrix(rows, columns, aoti_torch_dtype_int32());
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__int_mm_out(sums.get(), a, turned.get()));
  RAIIAtenTensorHandle result = EmptyMatrix(rows, columns, aoti_torch_dtype_float32());
  cpp_int8_product(Data<float>(result.get()), Data<const int32_t>(sums.get()),
                   Data<const float>(steps), Data<const float>(scales), Data<const float>(bias),
                   rows, columns, activation);
  return result;
}
#endif

}  // namespace
}  // namespace aoti_int8

"""

# A kernel as Inductor writes them: what follows the product, for libtorch.
KERNEL = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void cpp_int8_product(float* out, const int32_t* sums, const float* steps,
                                 const float* scales, const float* bias, int64_t rows,
                                 int64_t columns, int32_t activation)
{
    const double nanoseconds = (activation == 2 ? 1.2 : 0.2) * rows * columns;
    const int most = aoti::kernel::ThreadsFor(rows, nanoseconds);
    aoti::kernel::Parallel(most, [=](int thread, int threads) {
        const int64_t last = rows * (thread + 1) / threads;
        for (int64_t i = rows * thread / threads; i < last; ++i) {
#if INDUCTOR_USE_VECTOR_TYPES()
            using Vec = at::vec::Vectorized<float>;
            using Sums = at::vec::Vectorized<int32_t>;
            for (int64_t j = 0; j < columns; j += Vec::size()) {
                const int64_t count = std::min<int64_t>(Vec::size(), columns - j);
                Vec x = at::vec::convert<float>(Sums::loadu(sums + i * columns + j, count));
                x = x * Vec(steps[i]) * Vec::loadu(scales + j, count);
                if (bias != nullptr) x = x + Vec::loadu(bias + j, count);
                if (activation == 1) x = at::vec::clamp_min(x, Vec(0.0f));
                if (activation == 2) {
                    x = x * Vec(0.5f) * ((x * Vec(0.70710678f)).erf() + Vec(1.0f));
                }
                x.store(out + i * columns + j, count);
            }
#else
            for (int64_t j = 0; j < columns; ++j) {
                float x = static_cast<float>(sums[i * columns + j]) * steps[i] * scales[j];
                if (bias != nullptr) x += bias[j];
                if (activation == 1 && x < 0.0f) x = 0.0f;
                if (activation == 2) x = x * 0.5f * (std::erf(x * 0.70710678f) + 1.0f);
                out[i * columns + j] = x;
            }
#endif
        }
    });
}
"""
