// Integer products of many rows of activations with AVX512_VNNI. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_PLANES_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_PLANES_H_

#include "runtime/slim/kernels/gemm_int8_rows.h"
#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/quantized_vnni.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// With three planes and two panels of columns: 24 sums.
constexpr int kPlanesRows = 4;

// Sums of raised numbers times a plane are too large by `raise` * (sum of the plane).
AOTI_SLIM_VNNI void StartsOfPlanes(const Planes& planes, int64_t m, int raise, int32_t* to) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0, group = 0; k < planes.k; k += planes.group, ++group) {
      const int64_t count = planes.k - k < planes.group ? planes.k - k : planes.group;
      const int8_t* from = planes.data + i * planes.row + group * planes.run;
      for (int p = 0; p < planes.count; ++p) {
        *to++ = -raise * SumOfInt8(from + p * planes.plane, count);
      }
    }
  }
}

// The numbers of a block as two panels: four of each row, then the next four.
AOTI_SLIM_VNNI void FoursOfInt4(const uint8_t* weights, int64_t k, uint32_t* to, int64_t panel) {
  const __m512i turn = TurnOfInt4(), nibble = _mm512_set1_epi8(15);
  for (int64_t at = 0; at < k; at += 4, weights += 64, to += kPanel) {
    const __m512i both =
        _mm512_maskz_permutexvar_epi8(~__mmask64{0}, turn, _mm512_loadu_si512(weights));
    _mm512_storeu_si512(to, _mm512_and_si512(both, nibble));
    _mm512_storeu_si512(to + panel, _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble));
  }
}

// kRows rows times 32 columns, of which `columns` are stored.
template <int kPlanes, int kRows>
AOTI_SLIM_VNNI void PlanesTile(const PlanesProduct& product, int64_t i) {
  const Planes& x = product.x;
  const int64_t groups = (x.k + x.group - 1) / x.group;
  const uint32_t* b = product.b;
  VecF total[kRows][2] = {};
  for (int64_t group = 0; group < groups; ++group) {
    const int8_t* a = x.data + i * x.row + group * x.run;
    const int32_t* starts = product.starts + (i * groups + group) * kPlanes;
    __m512i sum[kRows][kPlanes][2];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p) {
        sum[r][p][0] = sum[r][p][1] = _mm512_set1_epi32(starts[r * groups * kPlanes + p]);
      }
    }
    const int64_t rest = x.k - group * x.group, count = rest < x.group ? rest : x.group;
    for (const int8_t* end = a + count; a < end; a += 4, b += kPanel) {
      const __m512i low = _mm512_loadu_si512(b), high = _mm512_loadu_si512(b + product.b_panel);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
        for (int p = 0; p < kPlanes; ++p) {
          int32_t four;
          __builtin_memcpy(&four, a + r * x.row + p * x.plane, 4);
          const __m512i fours = _mm512_set1_epi32(four);
          AddProductsOfFours(low, fours, sum[r][p][0]);
          AddProductsOfFours(high, fours, sum[r][p][1]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const float step = *product.StepAt(i + r, group);
      VecF all[2];
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) {
        // Sums of 256 products with 4-bit numbers leave room for a byte more.
        if (product.zeros) {
          all[c] = ToFloats(_mm512_add_epi32(
              sum[r][0][c], _mm512_maskz_slli_epi32(~__mmask16{0}, sum[r][1][c], 8)));
        } else {
          all[c] = ToFloats(sum[r][0][c]) + ToFloats(sum[r][1][c]) * 256;
        }
        if constexpr (kPlanes == 3) all[c] += ToFloats(sum[r][2][c]) * 65536;
        all[c] *= step;
      }
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) {
        if (product.zeros) {
          const float* scales = product.scales + group * 4 * kPanel + c * kPanel;
          total[r][c] += Load(scales) * all[c] +
                         Load(scales + 2 * kPanel) * product.sums[(i + r) * groups + group];
        } else {
          total[r][c] += all[c];
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const int64_t left = product.columns - c * kPanel;
      if (left <= 0) continue;
      const int count = left < kPanel ? static_cast<int>(left) : kPanel;
      VecF value = total[r][c];
      if (!product.zeros) value *= LoadPart(product.scales + c * kPanel, count);
      StorePart(product.c + (i + r) * product.c_row + c * kPanel, value, count);
    }
  }
}

template <int kPlanes>
AOTI_SLIM_VNNI void VnniProductOfPlanes(const PlanesProduct& product) {
  int64_t i = 0;
  for (; i + kPlanesRows <= product.m; i += kPlanesRows) {
    PlanesTile<kPlanes, kPlanesRows>(product, i);
  }
  for (; i < product.m; ++i) PlanesTile<kPlanes, 1>(product, i);
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_PLANES_H_
