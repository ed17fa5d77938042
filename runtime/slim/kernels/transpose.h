// Transposes blocks of 4-byte numbers that are in registers.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_TRANSPOSE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_TRANSPOSE_H_

#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef float QuadAny __attribute__((vector_size(16), aligned(4), may_alias));

// Stores four rows of four numbers as columns.
inline void StoreTurnedQuads(const Quad (&rows)[4], float* to, int64_t to_step) {
  const Quad low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Quad high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Quad low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Quad high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  *reinterpret_cast<QuadAny*>(to) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  to += to_step;
  *reinterpret_cast<QuadAny*>(to) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  to += to_step;
  *reinterpret_cast<QuadAny*>(to) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  to += to_step;
  *reinterpret_cast<QuadAny*>(to) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

#if defined(__AVX512F__)
// Transposes 16 rows of 16 numbers.
inline void TransposeSixteen(__m512i (&rows)[16]) {
  typedef int32_t Words __attribute__((vector_size(64)));
  typedef int64_t Longs __attribute__((vector_size(64)));
  Words words[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    const Words a = (Words)rows[i], b = (Words)rows[i + 1];
    words[i] =
        __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    words[i + 1] =
        __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  // Rows 4 q + r of `quads` have the columns r, r + 4, r + 8 and r + 12 of rows 4 q to 4 q + 3.
  Longs quads[16];
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const Longs a = (Longs)words[q + i], b = (Longs)words[q + i + 2];
      quads[q + 2 * i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
      quads[q + 2 * i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const Longs a = quads[r], b = quads[4 + r], c = quads[8 + r], d = quads[12 + r];
    const Longs ab0 = __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13);
    const Longs ab1 = __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    const Longs cd0 = __builtin_shufflevector(c, d, 0, 1, 4, 5, 8, 9, 12, 13);
    const Longs cd1 = __builtin_shufflevector(c, d, 2, 3, 6, 7, 10, 11, 14, 15);
    rows[r] = (__m512i)__builtin_shufflevector(ab0, cd0, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[8 + r] = (__m512i)__builtin_shufflevector(ab0, cd0, 2, 3, 6, 7, 10, 11, 14, 15);
    rows[4 + r] = (__m512i)__builtin_shufflevector(ab1, cd1, 0, 1, 4, 5, 8, 9, 12, 13);
    rows[12 + r] = (__m512i)__builtin_shufflevector(ab1, cd1, 2, 3, 6, 7, 10, 11, 14, 15);
  }
}

// The same from memory to memory.
inline void TurnTile(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m512i block[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) block[i] = _mm512_loadu_si512(from + i * from_row);
  TransposeSixteen(block);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * to_row, block[i]);
}
#endif

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_TRANSPOSE_H_
