// Integer products with AVX512_VNNI, which adds four products of bytes to each sum at once. Only
// for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_VNNI_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_VNNI_H_

#include "runtime/slim/kernels/gemm_dots.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/quantized_round.h"
#include "runtime/slim/kernels/simd.h"

// No level includes this: callers check whether the CPU has it.
#define AOTI_SLIM_VNNI __attribute__((target("avx512vnni,avx512vbmi")))

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// How many bytes ahead memory is prefetched, which is enough to read it at full speed.
constexpr int64_t kVnniAhead = 4096;

inline VecF ToFloats(__m512i v) { return __builtin_convertvector((VecI)v, VecF); }

// 16 pairs of a scale and a zero point.
struct VnniScales {
  VecF scale, zero;
};

inline VnniScales SplitScales(VecF low, VecF high) {
  return {
      __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
      __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                              31)};
}
inline VnniScales LoadVnniScales(const float* p) { return SplitScales(Load(p), Load(p + 16)); }
inline VnniScales LoadVnniScales(const HalfBits* p) {
  return SplitScales(LoadFloats(p), LoadFloats(p + 16));
}
inline VnniScales LoadVnniScales(const BFloat16Bits* p) {
  const VecU both = (VecU)Load(reinterpret_cast<const float*>(p));
  return {(VecF)(both << 16), (VecF)(both & 0xffff0000)};
}

// Makes the four numbers of a row contiguous: byte 4 r + i is byte 16 i + r.
inline __m512i TurnOfInt4() {
  return _mm512_set_epi32(0x3f2f1f0f, 0x3e2e1e0e, 0x3d2d1d0d, 0x3c2c1c0c, 0x3b2b1b0b, 0x3a2a1a0a,
                          0x39291909, 0x38281808, 0x37271707, 0x36261606, 0x35251505, 0x34241404,
                          0x33231303, 0x32221202, 0x31211101, 0x30201000);
}

// Bytes 4 i + `first` of 32 numbers, and behind them bytes 4 i + first + 1.
AOTI_SLIM_VNNI inline __m512i BytesOfNumbers(VecI low, VecI high, int first) {
  alignas(64) static constexpr auto kIndices = [] {
    struct {
      uint8_t at[64];
    } indices = {};
    for (int i = 0; i < 64; ++i) indices.at[i] = static_cast<uint8_t>(i % 32 * 4 + i / 32);
    return indices;
  }();
  const __m512i from =
      _mm512_add_epi8(_mm512_load_si512(kIndices.at), _mm512_set1_epi8(static_cast<int8_t>(first)));
  return _mm512_permutex2var_epi8((__m512i)low, from, (__m512i)high);
}

// The same as RoundForInt4().
AOTI_SLIM_VNNI bool VnniRoundForInt4(const Int4Round& round) {
  const VecI magnitude = (VecI)Splat(0.0f) + 0x7fffffff;
  // With 128 more, all bytes but the highest are unsigned; without the highest bit, they are those
  // of the planes.
  const bool three = round.planes == 3;
  const VecI raise = (VecI)Splat(0.0f) + (three ? 0x8080 : 0x80);
  const __m512i signs =
      _mm512_maskz_set1_epi8(three ? ~__mmask64{0} : __mmask64{0xffffffff}, int8_t{-128});
  for (int64_t k = 0, group = 0; k < round.k; ++group) {
    const float* x = round.x + k;
    VecI most = {};
    VecF sum = {};
    for (int64_t i = 0; i < round.group; i += kLanes) {
      const VecF some = Load(x + i);
      const VecI size = (VecI)some & magnitude;
      most = size > most ? size : most;
      sum += some;
    }
    if (!StepOf(most, round.planes, round.steps + group)) return false;
    round.sums[group] = ReduceAdd(sum);
    const VecF inverse = Splat(1 / round.steps[group]);
    for (const int64_t end = k + round.group; k < end; k += 2 * kLanes) {
      const VecI low = RoundedOf(Load(round.x + k) * inverse) + raise;
      const VecI high = RoundedOf(Load(round.x + k + kLanes) * inverse) + raise;
      const __m512i bytes = _mm512_xor_si512(BytesOfNumbers(low, high, 0), signs);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(round.to[0] + k),
                          _mm512_castsi512_si256(bytes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(round.to[1] + k),
                          _mm512_maskz_extracti64x4_epi64(0xf, bytes, 1));
      if (!three) continue;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(round.to[2] + k),
                          _mm512_castsi512_si256(BytesOfNumbers(low, high, 2)));
    }
  }
  return true;
}

template <int kPlanes, typename Scale>
AOTI_SLIM_VNNI void VnniDotsOfInt4(const Int4Dots& dots) {
  const __m512i turn = TurnOfInt4();
  const __m512i nibble = _mm512_set1_epi8(15);
  const uint8_t* weights = dots.weights;
  const Scale* scales = static_cast<const Scale*>(dots.scales);
  VecF total[2] = {};  // rows 0..15 and 16..31 of the block
  int64_t k = 0;
  for (int64_t group = 0; k < dots.k; ++group, scales += dots.scales_row) {
    // Sums with the low half of each byte, and sums with the whole byte.
    __m512i low[kPlanes], whole[kPlanes];
#pragma GCC unroll 3
    for (int p = 0; p < kPlanes; ++p) low[p] = whole[p] = _mm512_setzero_si512();
    for (const int64_t end = k + dots.group; k < end; k += 32) {
#pragma GCC unroll 8
      for (int i = 0; i < 32; i += 4, weights += 64) {
        const __m512i both =
            _mm512_maskz_permutexvar_epi8(~__mmask64{0}, turn, _mm512_loadu_si512(weights));
        __builtin_prefetch(weights + kVnniAhead);
        const __m512i half = _mm512_and_si512(both, nibble);
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          int32_t four;
          __builtin_memcpy(&four, dots.planes[p] + k + i, 4);
          const __m512i x = _mm512_set1_epi32(four);
          low[p] = _mm512_dpbusd_epi32(low[p], half, x);
          whole[p] = _mm512_dpbusd_epi32(whole[p], both, x);
        }
      }
    }
    VecF sum[2] = {};
    float factor = dots.steps[group];
#pragma GCC unroll 3
    for (int p = 0; p < kPlanes; ++p, factor *= 256) {
      sum[0] += factor * ToFloats(low[p]);
      sum[1] += factor / 16 * ToFloats(_mm512_sub_epi32(whole[p], low[p]));
    }
    const float x = dots.sums[group];
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const Scale* from = scales + 32 * c;
      // Prefetches the next block.
      __builtin_prefetch(from + 2 * kInt4Block);
      __builtin_prefetch(from + 2 * kInt4Block + 16);
      const VnniScales s = LoadVnniScales(from);
      total[c] += s.scale * (sum[c] - 8 * x) + s.zero * x;
    }
  }
  Store(dots.out, total[0]);
  Store(dots.out + 16, total[1]);
}

AOTI_SLIM_VNNI bool VnniRoundForInt8(const Int8Round& round) {
  Int8Run* to = round.to;
  for (int64_t k = 0; k < round.k; k += kInt8Run, ++to) {
    const int64_t count = round.k - k < kInt8Run ? round.k - k : kInt8Run;
    int8_t* planes[kMaxPlanes] = {to->planes[0], to->planes[1], to->planes[2]};
    const int64_t whole = count / 64 * 64, padded = (count + 63) / 64 * 64;
    for (int p = 0; p < round.planes && whole < padded; ++p) {
      __builtin_memset(planes[p] + whole, 0, 64);
    }
    if (!RoundRun(round.x + k, count, round.planes, planes, &to->step)) return false;
    for (int p = 0; p < round.planes; ++p) {
      __m512i sum = _mm512_setzero_si512();
      for (int64_t i = 0; i < padded; i += 64) {
        sum =
            _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-128), _mm512_load_si512(to->planes[p] + i));
      }
      _mm512_store_si512(to->start[p], _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
  }
  return true;
}

// The sums over the lanes of four vectors.
inline __m128 TotalsOf(const VecF* v) {
  const auto low = [](VecF a, VecF b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  };
  const auto high = [](VecF a, VecF b) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15,
                                   31);
  };
  const VecF even = low(v[0], v[2]) + high(v[0], v[2]), odd = low(v[1], v[3]) + high(v[1], v[3]);
  const VecF all = low(even, odd) + high(even, odd);
  const auto half = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
  return (__m128)(__builtin_shufflevector(half, half, 0, 1, 2, 3) +
                  __builtin_shufflevector(half, half, 4, 5, 6, 7));
}

// kRows rows of activations times one row of weights. The weights are read sequentially, which the
// hardware prefetcher handles better than explicit prefetching. totals: vectors whose lanes must
// still be added up.
template <int kPlanes, int kRows>
AOTI_SLIM_VNNI inline void VnniRowsOfInt8(const int8_t* b, int64_t k, const Int8Run* run,
                                          int64_t runs, VecF* totals) {
  const __m512i signs = _mm512_set1_epi8(-128);
  VecF total[kRows] = {};
  for (int64_t rest = k; rest > 0; rest -= kInt8Run, ++run) {
    __m512i sum[kRows][kPlanes];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p) sum[i][p] = _mm512_load_si512(run[i * runs].start[p]);
    }
    const int64_t count = rest < kInt8Run ? rest : kInt8Run;
    int64_t at = 0;
#pragma GCC unroll 4
    for (; at + 64 <= count; at += 64, b += 64) {
      const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(b), signs);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          const __m512i x = _mm512_load_si512(run[i * runs].planes[p] + at);
          sum[i][p] = _mm512_dpbusd_epi32(sum[i][p], w, x);
        }
      }
    }
    if (at < count) {
      const __mmask64 there = (__mmask64{1} << (count - at)) - 1;
      const __m512i w = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, b), signs);
      for (int i = 0; i < kRows; ++i) {
        for (int p = 0; p < kPlanes; ++p) {
          const __m512i x = _mm512_load_si512(run[i * runs].planes[p] + at);
          sum[i][p] = _mm512_dpbusd_epi32(sum[i][p], w, x);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      float factor = run[i * runs].step;
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p, factor *= 256) total[i] += factor * ToFloats(sum[i][p]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) totals[i] = total[i];
}

// Rows of weights that are read side by side.
constexpr int kVnniStreams = 4;

// One row of activations times rows of weights that are `step` bytes apart. So an activation is
// loaded once for several weights, and each row is a part of a long stream, which the hardware
// prefetcher follows: several streams at a time are faster than one. The results are those of
// VnniRowsOfInt8().
template <int kPlanes>
AOTI_SLIM_VNNI inline void VnniStreamsOfInt8(const int8_t* b, int64_t step, int64_t k,
                                             const Int8Run* run, VecF* totals) {
  const __m512i signs = _mm512_set1_epi8(-128);
  VecF total[kVnniStreams] = {};
  for (int64_t rest = k; rest > 0; rest -= kInt8Run, ++run) {
    __m512i sum[kVnniStreams][kPlanes];
#pragma GCC unroll 8
    for (int r = 0; r < kVnniStreams; ++r) {
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p) sum[r][p] = _mm512_load_si512(run->start[p]);
    }
    const int64_t count = rest < kInt8Run ? rest : kInt8Run;
    int64_t at = 0;
    for (; at + 64 <= count; at += 64, b += 64) {
#pragma GCC unroll 8
      for (int r = 0; r < kVnniStreams; ++r) {
        const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(b + r * step), signs);
        __builtin_prefetch(b + r * step + kStreamAhead, 0, 2);
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          const __m512i x = _mm512_load_si512(run->planes[p] + at);
          sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], w, x);
        }
      }
    }
    if (at < count) {
      const __mmask64 there = (__mmask64{1} << (count - at)) - 1;
#pragma GCC unroll 8
      for (int r = 0; r < kVnniStreams; ++r) {
        const __m512i w = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, b + r * step), signs);
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          const __m512i x = _mm512_load_si512(run->planes[p] + at);
          sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], w, x);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kVnniStreams; ++r) {
      float factor = run->step;
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p, factor *= 256) total[r] += factor * ToFloats(sum[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kVnniStreams; ++r) totals[r] = total[r];
}

template <int kPlanes>
AOTI_SLIM_VNNI void VnniDotsOfInt8(const Int8Dots& dots) {
  const int64_t runs = (dots.k + kInt8Run - 1) / kInt8Run;
  int64_t i = 0;
  for (; i + 4 <= dots.m; i += 4) {
    for (int64_t j = 0; j < dots.n; ++j) {
      VecF totals[4];
      VnniRowsOfInt8<kPlanes, 4>(dots.b + j * dots.k, dots.k, dots.runs + i * runs, runs, totals);
      float sums[4];
      _mm_storeu_ps(sums, TotalsOf(totals));
      for (int r = 0; r < 4; ++r) dots.c[(i + r) * dots.c_row + j] = sums[r] * dots.scales[j];
    }
  }
  for (; i < dots.m; ++i) {
    const Int8Run* run = dots.runs + i * runs;
    float* c = dots.c + i * dots.c_row;
    const int64_t step = dots.n / kVnniStreams;
    for (int64_t j = 0; j < step; ++j) {
      VecF totals[kVnniStreams];
      VnniStreamsOfInt8<kPlanes>(dots.b + j * dots.k, step * dots.k, dots.k, run, totals);
      for (int r = 0; r < kVnniStreams; r += 4) {
        float sums[4];
        _mm_storeu_ps(sums, TotalsOf(totals + r));
        for (int q = 0; q < 4; ++q) {
          const int64_t at = j + (r + q) * step;
          c[at] = sums[q] * dots.scales[at];
        }
      }
    }
    for (int64_t j = step * kVnniStreams; j < dots.n; j += 4) {
      const int count = dots.n - j < 4 ? static_cast<int>(dots.n - j) : 4;
      VecF totals[4] = {};
      for (int r = 0; r < count; ++r) {
        const int8_t* b = dots.b + (j + r) * dots.k;
        VnniRowsOfInt8<kPlanes, 1>(b, dots.k, run, runs, totals + r);
      }
      float sums[4];
      _mm_storeu_ps(sums, TotalsOf(totals));
      for (int r = 0; r < count; ++r) c[j + r] = sums[r] * dots.scales[j + r];
    }
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_VNNI_H_
