#include "runtime/slim/gemm/parts.h"

#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/tensor/dtype.h"

namespace aoti::slim {
namespace {

using std::int64_t;

template <typename Function>
decltype(auto) DispatchType(GemmType type, const Function& function) {
  switch (type) {
    case GemmType::kBFloat16:
      return function.template operator()<BFloat16>();
    case GemmType::kFloat16:
      return function.template operator()<Half>();
    default:
      return function.template operator()<float>();
  }
}

}  // namespace

const GemmKernels& CurrentGemmKernels() { return AOTI_SLIM_CURRENT_KERNELS(kGemm); }

void FinishSums(const GemmAny& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1, const float* sums,
                int64_t sums_row) {
  const NarrowFunction narrow = CurrentGemmKernels().narrow_sums[static_cast<int>(g.type)];
  const bool contiguous = g.c_col == 1 && (g.bias == nullptr || g.bias_col == 0 || g.bias_col == 1);
  if (narrow != nullptr && contiguous && sums != nullptr) {
    for (int64_t i = i0; i < i1; ++i) {
      const void* bias =
          g.bias == nullptr ? nullptr : GemmAt(g.type, g.bias, i * g.bias_row + j0 * g.bias_col);
      void* c = const_cast<void*>(GemmAt(g.type, g.c, i * g.c_row + j0));
      narrow(sums + (i - i0) * sums_row, g.alpha, bias, g.bias_col, g.beta, g.activation, j1 - j0,
             c);
    }
    return;
  }
  const ActivateFunction activate = CurrentGemmKernels().activate;
  DispatchType(g.type, [&]<typename T>() {
    for (int64_t i = i0; i < i1; ++i) {
      T* c = static_cast<T*>(g.c) + i * g.c_row;
      const T* bias = static_cast<const T*>(g.bias) + (g.bias == nullptr ? 0 : i * g.bias_row);
      const float* sum = sums == nullptr ? nullptr : sums + (i - i0) * sums_row;
      for (int64_t j = j0; j < j1; ++j) {
        float value = sum == nullptr ? 0 : g.alpha * sum[j - j0];
        if (g.bias != nullptr) value += g.beta * static_cast<float>(bias[j * g.bias_col]);
        if (g.activation != GemmActivation::kNone) activate(g.activation, &value, 1);
        c[j * g.c_col] = static_cast<T>(value);
      }
    }
  });
}

void CopyAsFloat(GemmType type, const void* from, int64_t from_row, int64_t from_col, int64_t rows,
                 int64_t columns, float* to, int64_t to_row, int64_t to_col) {
  DispatchType(type, [&]<typename T>() {
    const T* source = static_cast<const T*>(from);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to[i * to_row + j * to_col] = static_cast<float>(source[i * from_row + j * from_col]);
      }
    }
  });
}

}  // namespace aoti::slim
