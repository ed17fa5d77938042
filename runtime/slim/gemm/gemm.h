// Matrix products, used by mm, addmm, bmm, linear and convolutions.

#ifndef AOTI_RUNTIME_SLIM_GEMM_GEMM_H_
#define AOTI_RUNTIME_SLIM_GEMM_GEMM_H_

#include <cstdint>

#include "runtime/slim/kernels/gemm.h"

namespace aoti::slim {

// c[m, n] = alpha * sum_k a[m, k] * b[k, n] + beta * bias[m, n]
//
// Strides are in elements and may be any number (0 broadcasts a bias). c must not overlap with a or
// b; it may be the bias itself. If beta is 0, the bias is not read.
struct GemmF32 {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row, a_col;
  const float* b;  // may be null if packed_b is not
  std::int64_t b_row, b_col;
  const float* packed_b = nullptr;  // b in the layout of kernels/gemm.h, aligned to 64 bytes
  float* c;
  std::int64_t c_row, c_col = 1;
  float alpha = 1;
  float beta = 0;
  const float* bias = nullptr;
  std::int64_t bias_row = 0, bias_col = 0;
};

// Uses up to MaxThreads() threads if the product is large enough, and one within a parallel region.
// The result does not depend on the number of threads.
void Gemm(const GemmF32& gemm);

// The storage type of numbers; all computations are in float.
enum class GemmType : int { kFloat = 0, kBFloat16 = 1, kFloat16 = 2 };

// The same with all four matrices of `type`, and with an activation of the result, for which the
// columns of c are contiguous if `type` is float. A result of 16 bits is rounded once, after it.
struct GemmAny {
  GemmType type;
  std::int64_t m, n, k;
  const void* a;
  std::int64_t a_row, a_col;
  const void* b;
  std::int64_t b_row, b_col;
  const void* packed_b = nullptr;
  void* c;
  std::int64_t c_row, c_col = 1;
  float alpha = 1;
  float beta = 0;
  const void* bias = nullptr;
  std::int64_t bias_row = 0, bias_col = 0;
  GemmActivation activation = GemmActivation::kNone;
};

// On x86-64, subnormal floats of large matrices count as zeros.
void Gemm(const GemmAny& gemm);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_GEMM_H_
