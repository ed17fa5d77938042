#include "runtime/slim/kernels/conv.h"

#include "runtime/slim/kernels/conv_depthwise.h"
#include "runtime/slim/kernels/conv_tiles.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef float Vec4 __attribute__((vector_size(16)));
typedef float Vec4Any __attribute__((vector_size(16), aligned(4), may_alias));

inline void Transpose4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Vec4 rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = *reinterpret_cast<const Vec4Any*>(from + i * from_stride);
  const Vec4 low0 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Vec4 high0 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Vec4 low1 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Vec4 high1 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  *reinterpret_cast<Vec4Any*>(to) = __builtin_shufflevector(low0, low1, 0, 1, 4, 5);
  *reinterpret_cast<Vec4Any*>(to + to_stride) = __builtin_shufflevector(low0, low1, 2, 3, 6, 7);
  *reinterpret_cast<Vec4Any*>(to + 2 * to_stride) =
      __builtin_shufflevector(high0, high1, 0, 1, 4, 5);
  *reinterpret_cast<Vec4Any*>(to + 3 * to_stride) =
      __builtin_shufflevector(high0, high1, 2, 3, 6, 7);
}

// The pixels of an image with three channels, from planes. Returns how many it has done.
int64_t Interleave3(const float* from, int64_t plane, float* to, int64_t pixels) {
  int64_t i = 0;
  for (; i + 4 <= pixels; i += 4, to += 12) {
    const Vec4 r = *reinterpret_cast<const Vec4Any*>(from + i);
    const Vec4 g = *reinterpret_cast<const Vec4Any*>(from + plane + i);
    const Vec4 b = *reinterpret_cast<const Vec4Any*>(from + 2 * plane + i);
    const Vec4 low = __builtin_shufflevector(r, g, 0, 4, 1, 5);
    const Vec4 high = __builtin_shufflevector(r, g, 2, 6, 3, 7);
    const Vec4 middle = __builtin_shufflevector(low, b, 3, 5, 3, 5);
    *reinterpret_cast<Vec4Any*>(to) = __builtin_shufflevector(low, b, 0, 1, 4, 2);
    *reinterpret_cast<Vec4Any*>(to + 4) = __builtin_shufflevector(middle, high, 0, 1, 4, 5);
    *reinterpret_cast<Vec4Any*>(to + 8) = __builtin_shufflevector(high, b, 6, 2, 3, 7);
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
    for (; column + 4 <= columns; column += 4) {
      int64_t r = row;
      for (; r + 4 <= row_end; r += 4) {
        Transpose4x4(from + r * from_stride + column, from_stride, to + column * to_stride + r,
                     to_stride);
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

}  // namespace

extern const ConvKernels kConv;
const ConvKernels kConv = {kTilePixels, RunTiles, RunDepthwise, Transpose};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
