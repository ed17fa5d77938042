// Matrix products, the engine of mm, addmm, bmm, linear, convolutions.

#ifndef AOTI_RUNTIME_SLIM_GEMM_GEMM_H_
#define AOTI_RUNTIME_SLIM_GEMM_GEMM_H_

#include <cstdint>

namespace aoti::slim {

// c[m, n] = alpha * sum_k a[m, k] * b[k, n] + beta * bias[m, n]
//
// All strides are in elements, any may be any number (0 broadcasts a bias). c must not overlap with
// a or b; it may be the bias itself. Where beta is 0 the bias is not read.
struct GemmF32 {
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row, a_col;
  const float* b;  // may be null where packed_b is not
  std::int64_t b_row, b_col;
  const float* packed_b = nullptr;  // b in the layout of kernels/gemm.h, aligned to 64 bytes
  float* c;
  std::int64_t c_row, c_col = 1;
  float alpha = 1;
  float beta = 0;
  const float* bias = nullptr;
  std::int64_t bias_row = 0, bias_col = 0;
};

// Uses up to MaxThreads() threads where the product is large enough. Within a parallel region: one.
// The result does not depend on the number of threads.
void Gemm(const GemmF32& gemm);

// How numbers are stored; all are calculated with as float.
enum class GemmType : int { kFloat = 0, kBFloat16 = 1, kFloat16 = 2 };

// The same, where all four matrices are of `type`.
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
};

void Gemm(const GemmAny& gemm);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_GEMM_H_
