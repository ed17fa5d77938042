// Exact products of int8, used by _int_mm.

#ifndef AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_
#define AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_

#include <cstdint>

namespace aoti::slim {

// c[i, j] = sum_k a[i * a_row + k] * b[j * k + k]: b is the contiguous weight of a linear layer.
struct GemmInt8 {
  std::int64_t m, n, k;
  const std::int8_t* a;
  std::int64_t a_row;
  const std::int8_t* b;
  std::int32_t* c;
  std::int64_t c_row;
};

// The result is the same on all CPUs and for every number of threads.
void Gemm(const GemmInt8& gemm);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_GEMM_INT8_H_
