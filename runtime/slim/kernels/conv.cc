#include "runtime/slim/kernels/conv.h"

#include "runtime/slim/kernels/bfloat16.h"
#include "runtime/slim/kernels/conv_amx.h"
#include "runtime/slim/kernels/conv_depthwise.h"
#include "runtime/slim/kernels/conv_few.h"
#include "runtime/slim/kernels/conv_tiles.h"
#include "runtime/slim/kernels/conv_winograd.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/simd.h"
#include "runtime/slim/kernels/transpose.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// The pixels of an image with three channels, from planes. Returns how many it has done.
int64_t Interleave3(const float* from, int64_t plane, float* to, int64_t pixels) {
  int64_t i = 0;
  for (; i + 4 <= pixels; i += 4, to += 12) {
    const Quad r = *reinterpret_cast<const QuadAny*>(from + i);
    const Quad g = *reinterpret_cast<const QuadAny*>(from + plane + i);
    const Quad b = *reinterpret_cast<const QuadAny*>(from + 2 * plane + i);
    const Quad low = __builtin_shufflevector(r, g, 0, 4, 1, 5);
    const Quad high = __builtin_shufflevector(r, g, 2, 6, 3, 7);
    const Quad middle = __builtin_shufflevector(low, b, 3, 5, 3, 5);
    *reinterpret_cast<QuadAny*>(to) = __builtin_shufflevector(low, b, 0, 1, 4, 2);
    *reinterpret_cast<QuadAny*>(to + 4) = __builtin_shufflevector(middle, high, 0, 1, 4, 5);
    *reinterpret_cast<QuadAny*>(to + 8) = __builtin_shufflevector(high, b, 6, 2, 3, 7);
  }
  return i;
}

void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  if (rows == 3 && to_stride == 3) {
    const int64_t done = Interleave3(from, from_stride, to, columns);
    from += done;
    to += 3 * done;
    columns -= done;
  }
  // Complete cache lines of the result before the next ones.
  constexpr int64_t kRows = 16;
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t row_end = row + kRows < rows ? row + kRows : rows;
    int64_t column = 0;
#if defined(__AVX512F__)
    for (; row_end - row == 16 && column + 16 <= columns; column += 16) {
      TurnTile(from + row * from_stride + column, from_stride, to + column * to_stride + row,
               to_stride);
    }
#endif
    for (; column + 4 <= columns; column += 4) {
      int64_t r = row;
      for (; r + 4 <= row_end; r += 4) {
        Quad block[4];
        for (int i = 0; i < 4; ++i) {
          block[i] = *reinterpret_cast<const QuadAny*>(from + (r + i) * from_stride + column);
        }
        StoreTurnedQuads(block, to + column * to_stride + r, to_stride);
      }
      for (; r < row_end; ++r) {
        for (int64_t c = column; c < column + 4; ++c) {
          to[c * to_stride + r] = from[r * from_stride + c];
        }
      }
    }
    for (; column < columns; ++column) {
      for (int64_t r = row; r < row_end; ++r) {
        to[column * to_stride + r] = from[r * from_stride + column];
      }
    }
  }
}

void WidenHalf(const uint16_t* from, int64_t count, float* to) {
  const auto* bits = reinterpret_cast<const HalfBits*>(from);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(to + i, LoadFloats(bits + i));
  for (; i < count; ++i) to[i] = ToFloat(bits[i]);
}

}  // namespace

extern const ConvKernels kConv;
const ConvKernels kConv = {kMultipliesPairs, kTilePixels,    kLanes,          kCrowded,
                           RunTiles,         kRunAmxTiles,   RunFew,          RunDepthwise,
                           WinogradWeights,  WinogradInputs, WinogradResults, Transpose,
                           RoundToBFloat16,  WidenBFloat16,  WidenHalf};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
