// Rearranges matrices for the tiles. For kernels/gemm.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/gemm_load.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef float Quad __attribute__((vector_size(16)));
typedef float QuadAny __attribute__((vector_size(16), aligned(4), may_alias));

inline Quad LoadQuad(const float* p) { return *reinterpret_cast<const QuadAny*>(p); }
template <typename Bits>
inline Quad LoadQuad(const Bits* p) {
  Bits several[kLanes] = {p[0], p[1], p[2], p[3]};
  const VecF wide = LoadFloats(several);
  return Quad{wide[0], wide[1], wide[2], wide[3]};
}

// Four rows, four columns at a time.
template <typename T>
inline void TransposeQuads(const T* from, int64_t from_row, int64_t columns, float* to,
                           int64_t to_step) {
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    const Quad r0 = LoadQuad(from + j);
    const Quad r1 = LoadQuad(from + from_row + j);
    const Quad r2 = LoadQuad(from + 2 * from_row + j);
    const Quad r3 = LoadQuad(from + 3 * from_row + j);
    const Quad low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    const Quad high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const Quad low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    const Quad high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    float* out = to + j * to_step;
    *reinterpret_cast<QuadAny*>(out) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    out += to_step;
    *reinterpret_cast<QuadAny*>(out) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    out += to_step;
    *reinterpret_cast<QuadAny*>(out) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    out += to_step;
    *reinterpret_cast<QuadAny*>(out) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  }
  for (; j < columns; ++j) {
    for (int i = 0; i < 4; ++i) to[j * to_step + i] = ToFloat(from[i * from_row + j]);
  }
}

template <typename T>
void Transpose(const void* source, int64_t from_row, int64_t rows, int64_t columns, float* to,
               int64_t to_step) {
  const T* from = static_cast<const T*>(source);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    TransposeQuads(from + i * from_row, from_row, columns, to + i, to_step);
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_step + i] = ToFloat(from[i * from_row + j]);
  }
}

template <typename T>
void Widen(const void* source, int64_t from_row, int64_t rows, float* to) {
  const T* from = static_cast<const T*>(source);
  for (int64_t i = 0; i < rows; ++i) {
    for (int j = 0; j < kPanel; j += kLanes) {
      Store(to + i * kPanel + j, LoadFloats(from + i * from_row + j));
    }
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_
