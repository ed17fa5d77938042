#include "runtime/slim/kernels/quantized.h"

#include "runtime/slim/kernels/gemm_dots.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/gemm_pack.h"
#include "runtime/slim/kernels/int8_finish.h"
#include "runtime/slim/kernels/quantized_round.h"
#if defined(__AVX2__)
#include "runtime/slim/kernels/quantized_int4.h"
#endif
#if defined(__AVX512F__)
#include "runtime/slim/kernels/gemm_int8.h"
#include "runtime/slim/kernels/gemm_int8_rows.h"
#include "runtime/slim/kernels/quantized_planes.h"
#include "runtime/slim/kernels/quantized_vnni.h"
#endif

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef uint8_t BytesAny __attribute__((vector_size(16), aligned(1), may_alias));

// One column of a block as numbers 0..15, in row order.
template <int kRows>
void Unpack(const uint8_t* weights, int8_t* to) {
  if constexpr (kRows == kInt4Block) {
    const Bytes both = *reinterpret_cast<const BytesAny*>(weights);
    *reinterpret_cast<BytesAny*>(to) = both & 15;
    *reinterpret_cast<BytesAny*>(to + 16) = both >> 4;
  } else {
    for (int j = 0; j < kRows; ++j) to[j] = static_cast<int8_t>(weights[j / 2] >> (j % 2 * 4) & 15);
  }
}

template <int kRows>
void Widen(const Int4Widen& widen) {
  const uint8_t* weights = widen.weights;
  const float* scales = widen.scales;
  float* to = widen.to;
  for (int64_t k = 0; k < widen.k; scales += 2 * kInt4Block) {
    for (const int64_t end = k + widen.group; k < end; ++k) {
      int8_t w[kRows];
      Unpack<kRows>(weights, w);
      weights += kRows / 2;
      for (int j = 0; j < kRows; j += kLanes) {
        const VecF value = LoadFloats(w + j) - 8;
        Store(to + j / kPanel * widen.k * kPanel + j % kPanel,
              value * Load(scales + j) + Load(scales + kInt4Block + j));
      }
      to += kPanel;
    }
  }
}

void WidenInt4(const Int4Widen& widen) {
  if (widen.rows == kInt4Block) {
    Widen<kInt4Block>(widen);
  } else {
    Widen<kPanel>(widen);
  }
}

void DotsOfInt8(const Int8Dots& dots) {
  Dots<int8_t>({.m = dots.m,
                .n = dots.n,
                .k = dots.k,
                .a = dots.a,
                .a_row = dots.k,
                .b = dots.b,
                .b_row = dots.k,
                .c = dots.c,
                .c_row = dots.c_row});
  for (int64_t i = 0; i < dots.m; ++i) {
    float* c = dots.c + i * dots.c_row;
    for (int64_t j = 0; j < dots.n; ++j) c[j] *= dots.scales[j];
  }
}

}  // namespace

const QuantizedKernels kQuantized = {
    .int4_round = RoundForInt4,
#if defined(__AVX2__)
    .int4_dots = {DotsOfInt4<3, float>, DotsOfInt4<2, BFloat16Bits>, DotsOfInt4<2, HalfBits>},
#else
    .int4_dots = {},
#endif
    .int4_dots_rows = 8,
    .int4_widen = WidenInt4,
    .int4_fours = nullptr,
    .planes_starts = nullptr,
    .planes_product = {},
    .int8_round = nullptr,
    .int8_run_dots = {},
    .int8_dots = DotsOfInt8,
    .int8_transpose = Transpose<int8_t>,
    .int8_fours = nullptr,
    .int8_product = nullptr,
    .int8_amx = nullptr,
    .int8_starts = nullptr,
    .int8_rows = nullptr,
    .int8_finish = FinishInt8,
};

#if defined(__AVX512F__)
const QuantizedKernels kQuantizedVnni = {
    .int4_round = VnniRoundForInt4,
    .int4_dots = {VnniDotsOfInt4<3, float>, VnniDotsOfInt4<2, BFloat16Bits>,
                  VnniDotsOfInt4<2, HalfBits>},
    .int4_dots_rows = 32,
    .int4_widen = WidenInt4,
    .int4_fours = FoursOfInt4,
    .planes_starts = StartsOfPlanes,
    .planes_product = {VnniProductOfPlanes<2>, VnniProductOfPlanes<3>},
    .int8_round = VnniRoundForInt8,
    .int8_run_dots = {VnniDotsOfInt8<2>, VnniDotsOfInt8<3>},
    .int8_dots = DotsOfInt8,
    .int8_transpose = Transpose<int8_t>,
    .int8_fours = FoursOfInt8,
    .int8_product = VnniProductOfInt8,
    .int8_amx = AmxProductOfInt8,
    .int8_starts = StartsOfInt8,
    .int8_rows = VnniProductOfInt8Rows,
    .int8_finish = FinishInt8,
};
#endif

}  // namespace AOTI_ISA
}  // namespace aoti::slim
