// Conversions to float of the activations, weights and results of quantized layers.

#ifndef AOTI_RUNTIME_SLIM_OPS_QUANTIZED_FLOATS_H_
#define AOTI_RUNTIME_SLIM_OPS_QUANTIZED_FLOATS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/tensor/dtype.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// The number of units, with `products` products each, that justifies another thread.
inline std::int64_t GrainOf(std::int64_t products) {
  constexpr std::int64_t kProducts = 1 << 15;
  return std::max<std::int64_t>(1, kProducts / std::max<std::int64_t>(1, products));
}

template <typename T>
constexpr int kGemmTypeOf = std::is_same_v<T, float>      ? 0
                            : std::is_same_v<T, BFloat16> ? 1
                                                          : 2;

// to[k] = from[k * stride], for k < count.
template <typename T>
void CopyAsFloats(const T* from, std::int64_t stride, std::int64_t count, float* to) {
  std::int64_t k = 0;
  if (stride == 1) {
    AOTI_SLIM_CURRENT_KERNELS(kGemm).widen[kGemmTypeOf<T>](from, kPanel, count / kPanel, to);
    k = count / kPanel * kPanel;
  }
  for (; k < count; ++k) to[k] = static_cast<float>(from[k * stride]);
}

// x[m, k] as contiguous floats.
class FloatRows {
 public:
  FloatRows(const Tensor& x, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
            std::int64_t stride)
      : borrowed_(x.dtype() == ScalarType::kFloat32 && (stride == 1 || columns <= 1) &&
                  (row_stride == columns || rows <= 1)),
        copy_(borrowed_ ? 0 : static_cast<std::size_t>(rows * columns)),
        data_(borrowed_ ? x.data<float>() : copy_.data()) {
    if (borrowed_) return;
    DispatchFloating(x.dtype(), [&]<typename T>() {
      const T* from = x.data<T>();
      internal::ParallelFor(0, rows, GrainOf(columns), [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          CopyAsFloats(from + i * row_stride, stride, columns, copy_.data() + i * columns);
        }
      });
    });
  }
  explicit FloatRows(const Tensor& x)
      : FloatRows(x, x.size(0), x.size(1), x.stride(0), x.stride(1)) {}

  const float* data() const { return data_; }

 private:
  bool borrowed_;
  Scratch<float> copy_;
  const float* data_;
};

// Results [rows, columns] in a contiguous tensor; kernels write them as floats.
template <typename T>
class FloatResults {
 public:
  FloatResults(T* to, std::int64_t to_row, std::int64_t rows, std::int64_t columns)
      : rows_(rows),
        columns_(columns),
        to_(to),
        to_row_(to_row),
        floats_(kDirect ? 0 : static_cast<std::size_t>(rows * columns)) {}

  float* data() {
    if constexpr (kDirect) {
      return to_;
    } else {
      return floats_.data();
    }
  }
  std::int64_t row() const { return kDirect ? to_row_ : columns_; }

  void Finish() {
    if constexpr (kDirect) return;
    const NarrowFunction narrow = AOTI_SLIM_CURRENT_KERNELS(kGemm).narrow_sums[kGemmTypeOf<T>];
    for (std::int64_t i = 0; i < rows_; ++i) {
      const float* from = floats_.data() + i * columns_;
      T* to = to_ + i * to_row_;
      if (narrow != nullptr) {
        narrow(from, 1, nullptr, 0, 0, GemmActivation::kNone, columns_, to);
        continue;
      }
      for (std::int64_t j = 0; j < columns_; ++j) to[j] = static_cast<T>(from[j]);
    }
  }

 private:
  static constexpr bool kDirect = std::is_same_v<T, float>;
  std::int64_t rows_, columns_;
  T* to_;
  std::int64_t to_row_;
  Scratch<float> floats_;
};

// out[m, first..] = x * w', with the weights converted to float. widen(j, count, panels) writes up
// to kInt4Block rows of weights as panels in the layout of kernels/gemm.h; scales: a factor for
// each column, or null.
template <typename Widen>
void ByFloats(std::int64_t k, const float* x, const float* scales, const Tensor& out,
              std::int64_t first_column, const Widen& widen) {
  // Weights that are converted at once, so that they stay in the caches.
  constexpr std::int64_t kWidenedFloats = 1 << 20;
  const std::int64_t m = out.size(0), n = out.size(1);
  const std::int64_t all_blocks = (n - first_column + kInt4Block - 1) / kInt4Block;
  const std::int64_t blocks = std::clamp<std::int64_t>(
      kWidenedFloats / std::max<std::int64_t>(1, k * kInt4Block), 1, all_blocks);
  Scratch<float> panels(static_cast<std::size_t>(blocks * kInt4Block * k));
  for (std::int64_t begin = first_column; begin < n; begin += blocks * kInt4Block) {
    const std::int64_t end = std::min(begin + blocks * kInt4Block, n);
    const std::int64_t count = (end - begin + kInt4Block - 1) / kInt4Block;
    internal::ParallelFor(0, count, GrainOf(k * kInt4Block),
                          [&](std::int64_t first, std::int64_t last) {
                            for (std::int64_t block = first; block < last; ++block) {
                              const std::int64_t j = begin + block * kInt4Block;
                              const std::int64_t rows = std::min<std::int64_t>(kInt4Block, end - j);
                              widen(j, rows, panels.data() + block * kInt4Block * k);
                            }
                          });
    DispatchFloating(out.dtype(), [&]<typename T>() {
      FloatResults<T> results(out.data<T>() + begin, n, m, end - begin);
      Gemm(GemmF32{.m = m,
                   .n = end - begin,
                   .k = k,
                   .a = x,
                   .a_row = k,
                   .a_col = 1,
                   .b = nullptr,
                   .b_row = 0,
                   .b_col = 0,
                   .packed_b = panels.data(),
                   .c = results.data(),
                   .c_row = results.row()});
      for (std::int64_t i = 0; scales != nullptr && i < m; ++i) {
        float* c = results.data() + i * results.row();
        for (std::int64_t j = 0; j < end - begin; ++j) c[j] *= scales[begin + j];
      }
      results.Finish();
    });
  }
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_QUANTIZED_FLOATS_H_
