// Exact products of int8, used by _int_mm and by linear layers with int8 weights.

#ifndef AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_
#define AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_

#include <cstdint>

#include "runtime/slim/kernels/quantized.h"

namespace aoti::slim {

// c[i, j] = sum_k a[i * a_row + k] * b[j * k + k]: b is the contiguous weight of a linear layer.
struct GemmInt8 {
  std::int64_t m, n, k;
  const std::int8_t* a;
  std::int64_t a_row;
  const std::int8_t* b;
  std::int32_t* c;
  std::int64_t c_row;
  const Int8Finish* finish = nullptr;  // c is then float32 in the end
};

// The sums are the same on all CPUs, and the result for every number of threads.
void Gemm(const GemmInt8& gemm);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_
