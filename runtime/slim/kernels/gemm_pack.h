// Rearranges and converts matrices for the tiles, and the tiles' sums. Only for kernels/gemm.cc and
// kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_
#define AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_

#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/kernels/gemm_activation.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/transpose.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef uint32_t QuadU __attribute__((vector_size(16)));
typedef int8_t QuadI8Any __attribute__((vector_size(4), aligned(1), may_alias));
typedef uint16_t QuadU16Any __attribute__((vector_size(8), aligned(2), may_alias));

inline Quad LoadQuad(const float* p) { return *reinterpret_cast<const QuadAny*>(p); }
inline Quad LoadQuad(const int8_t* p) {
#if defined(__x86_64__)
  return (Quad)LoadFourFloats(p);
#else
  return __builtin_convertvector(*reinterpret_cast<const QuadI8Any*>(p), Quad);
#endif
}
inline Quad LoadQuad(const BFloat16Bits* p) {
  const auto bits = *reinterpret_cast<const QuadU16Any*>(p);
  return (Quad)(__builtin_convertvector(bits, QuadU) << 16);
}
inline Quad LoadQuad(const HalfBits* p) {
#if defined(__F16C__)
  return (Quad)_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  static_assert(kLanes == 4);
  return LoadFloats(p);
#endif
}

template <typename T>
void Transpose(const void* source, int64_t from_row, int64_t rows, int64_t columns, float* to,
               int64_t to_step) {
  const T* from = static_cast<const T*>(source);
  // The last rows are padded with copies of the last row if there is room.
  const auto row = [&](int64_t i) { return from + (i < rows ? i : rows - 1) * from_row; };
  int64_t done = 0;
#if defined(__AVX512F__)
  for (; done + 8 < rows && done + 16 <= to_step; done += 16) {
    int64_t j = 0;
    for (; j + 16 <= columns; j += 16) {
      __m512i block[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) block[i] = (__m512i)LoadFloats(row(done + i) + j);
      TransposeSixteen(block);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + (j + i) * to_step + done, block[i]);
    }
    for (; j < columns; ++j) {
      for (int i = 0; i < 16; ++i) to[j * to_step + done + i] = ToFloat(row(done + i)[j]);
    }
  }
#endif
  for (; done < rows && done + 4 <= to_step; done += 4) {
    const T* quad[4];
    for (int q = 0; q < 4; ++q) quad[q] = row(done + q);
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const Quad block[4] = {LoadQuad(quad[0] + j), LoadQuad(quad[1] + j), LoadQuad(quad[2] + j),
                             LoadQuad(quad[3] + j)};
      StoreTurnedQuads(block, to + j * to_step + done, to_step);
    }
    for (; j < columns; ++j) {
      for (int q = 0; q < 4; ++q) to[j * to_step + done + q] = ToFloat(quad[q][j]);
    }
  }
  for (; done < rows; ++done) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_step + done] = ToFloat(row(done)[j]);
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

inline void StoreFloats(BFloat16Bits* p, VecF v) {
  *reinterpret_cast<VecU16Any*>(p) = RoundedToBFloat16(v);
}
#if defined(__AVX512F__)
inline void StoreFloats(HalfBits* p, VecF v) {
  const __m256i bits = _mm512_maskz_cvtps_ph(static_cast<__mmask16>(-1), (__m512)v,
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
#elif defined(__F16C__)
inline void StoreFloats(HalfBits* p, VecF v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#endif

template <typename Bits>
void Narrow(const float* sums, float alpha, const void* bias, int64_t bias_step, float beta,
            GemmActivation activation, int64_t columns, void* c) {
  const Bits* added = static_cast<const Bits*>(bias);
  Bits* to = static_cast<Bits*>(c);
  for (int64_t j = 0; j < columns; j += kLanes) {
    const bool whole = j + kLanes <= columns;
    const int count = whole ? kLanes : static_cast<int>(columns - j);
    VecF value = alpha * (whole ? Load(sums + j) : LoadPart(sums + j, count));
    Bits edge[kLanes] = {};
    if (added != nullptr) {
      for (int i = 0; i < count && (!whole || bias_step == 0); ++i)
        edge[i] = added[(j + i) * bias_step];
      value += beta * LoadFloats(whole && bias_step != 0 ? added + j : edge);
    }
    StoreFloats(whole ? to + j : edge, Activated(activation, value));
    for (int i = 0; !whole && i < count; ++i) to[j + i] = edge[i];
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_GEMM_PACK_H_
