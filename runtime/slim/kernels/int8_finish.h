// What follows exact sums of int8 products. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_INT8_FINISH_H_
#define AOTI_RUNTIME_SLIM_KERNELS_INT8_FINISH_H_

#include "runtime/slim/kernels/gelu.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

template <GemmActivation kActivation>
inline VecF Finished(VecF sums, VecF step, VecF scale, VecF bias) {
  const VecF x = __builtin_convertvector((VecI)sums, VecF) * step * scale + bias;
  if constexpr (kActivation == GemmActivation::kGelu) return Gelu(x);
  // As a comparison with NaN is false, NaN stays.
  if constexpr (kActivation == GemmActivation::kRelu) return x < VecF{} ? VecF{} : x;
  return x;
}

template <GemmActivation kActivation>
void FinishInt8Of(const Int8Finish& finish, int64_t m, int64_t n, int32_t* sums, int64_t row) {
  for (int64_t i = 0; i < m; ++i, sums += row) {
    // Loads and stores of vectors may alias.
    float* c = reinterpret_cast<float*>(sums);
    const VecF step = Splat(finish.steps[i]);
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      const VecF bias = finish.bias == nullptr ? VecF{} : Load(finish.bias + j);
      Store(c + j, Finished<kActivation>(Load(c + j), step, Load(finish.scales + j), bias));
    }
    if (j == n) continue;
    const int rest = static_cast<int>(n - j);
    VecF left = {}, bias = {};
    __builtin_memcpy(&left, c + j, 4 * rest);
    if (finish.bias != nullptr) bias = LoadPart(finish.bias + j, rest);
    left = Finished<kActivation>(left, step, LoadPart(finish.scales + j, rest), bias);
    __builtin_memcpy(c + j, &left, 4 * rest);
  }
}

void FinishInt8(const Int8Finish& finish, int64_t m, int64_t n, int32_t* sums, int64_t row) {
  switch (finish.activation) {
    case GemmActivation::kNone:
      return FinishInt8Of<GemmActivation::kNone>(finish, m, n, sums, row);
    case GemmActivation::kRelu:
      return FinishInt8Of<GemmActivation::kRelu>(finish, m, n, sums, row);
    case GemmActivation::kGelu:
      return FinishInt8Of<GemmActivation::kGelu>(finish, m, n, sums, row);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_INT8_FINISH_H_
