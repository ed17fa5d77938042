// Linear algebra loops on contiguous columns, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_LINALG_H_
#define AOTI_RUNTIME_SLIM_KERNELS_LINALG_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

template <typename T>
struct ColumnKernels {
  // y += a * x
  void (*add)(int64_t size, T a, const T* x, T* y);
  // The sum of x * y.
  T (*dot)(int64_t size, const T* x, const T* y);
  // x = c * x - s * y and y = s * x + c * y, both from the old x and y.
  void (*rotate)(int64_t size, T c, T s, T* x, T* y);
};

// Tile size for products of float64 matrices.
inline constexpr int64_t kTileRows64 = 8;
inline constexpr int64_t kTileColumns64 = 6;

struct LinalgKernels {
  ColumnKernels<float> f32;
  ColumnKernels<double> f64;
  // tile = the sum over k of a[k][row] * b[k][column]. The tile is column-major; tile, a and b are
  // aligned to 64 bytes.
  void (*tile64)(int64_t depth, const double* a, const double* b, double* tile);
};

AOTI_SLIM_DECLARE_KERNELS(LinalgKernels, kLinalg)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_LINALG_H_
