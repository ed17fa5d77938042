// The activation of a product's elements. Only for kernels/gemm*.cc and what they include.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_ACTIVATION_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_ACTIVATION_H_

#include "runtime/slim/kernels/gelu.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

inline VecF Activated(GemmActivation activation, VecF x) {
  if (activation == GemmActivation::kGelu) return Gelu(x);
  // As a comparison with NaN is false, NaN stays.
  if (activation == GemmActivation::kRelu) return x < VecF{} ? VecF{} : x;
  return x;
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_ACTIVATION_H_
