// Pairs of bfloat16, which the instructions of AVX512_BF16 multiply: two numbers that lie side by
// side along the summed dim, the first one in the low half of 32 bits.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_PAIRS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_PAIRS_H_

#include "runtime/slim/kernels/simd.h"

#if defined(__AVX512F__)

// No level includes this: callers check whether the CPU has it.
#define AOTI_SLIM_BFLOAT16 __attribute__((target("avx512bf16")))

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef int32_t PairAny __attribute__((aligned(2), may_alias));

// The pair at `from`, in each lane.
inline __m512i SplatPair(const uint16_t* from) {
  return _mm512_set1_epi32(*reinterpret_cast<const PairAny*>(from));
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // defined(__AVX512F__)

#endif  // AOTI_RUNTIME_SLIM_KERNELS_PAIRS_H_
