// The steps of a WinogradJob.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_WINOGRAD_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_WINOGRAD_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/conv_tiles.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// A filter g as the 4x4 array G g G', with the rows (1 0 0), (1/2 1/2 1/2), (1/2 -1/2 1/2) and
// (0 0 1) of G; `to[j]` are the products of G with three numbers.
inline void WidenFilter(VecF a, VecF b, VecF c, VecF (&to)[4]) {
  const VecF ends = (a + c) * 0.5f;
  const VecF middle = b * 0.5f;
  to[0] = a;
  to[1] = ends + middle;
  to[2] = ends - middle;
  to[3] = c;
}

// weights: a block of a ConvJob with 9 taps for each slice.
void WinogradWeights(const WinogradJob& job, const float* weights, float* to) {
  const int64_t tap = job.inner * kConvBlock;
  for (int64_t s = 0; s < job.slices; ++s, weights += 9 * tap, to += tap) {
    for (int64_t i = 0; i < tap; i += kLanes) {
      VecF rows[3][4];
      for (int r = 0; r < 3; ++r) {
        const float* at = weights + 3 * r * tap + i;
        WidenFilter(Load(at), Load(at + tap), Load(at + 2 * tap), rows[r]);
      }
      for (int c = 0; c < 4; ++c) {
        VecF column[4];
        WidenFilter(rows[0][c], rows[1][c], rows[2][c], column);
        for (int r = 0; r < 4; ++r) Store(to + (4 * r + c) * job.slices * tap + i, column[r]);
      }
    }
  }
}

// Where a tile of 2x2 results is: the volume, the slice, and the first row and column.
struct WinogradTile {
  WinogradTile(const WinogradJob& job, int64_t index) {
    const int64_t wide = (job.grid[3] + 1) / 2;
    const int64_t high = (job.grid[2] + 1) / 2;
    x = index % wide * 2;
    y = index / wide % high * 2;
    d = index / wide / high % job.grid[1];
    n = index / wide / high / job.grid[1];
  }
  int64_t n, d, y, x;
};

// The pixels that a tile reads for a slice of the filter, or zeros.
struct WinogradPixels {
  WinogradPixels(const WinogradJob& job, const WinogradTile& tile, int64_t slice) {
    const int64_t d = tile.d * job.depth_step + slice * job.slice_step - job.padding[0];
    const float* image = job.in + tile.n * job.in_strides[0] + d * job.in_strides[1];
    for (int r = 0; r < 4; ++r) {
      const int64_t y = tile.y + r - job.padding[1];
      for (int c = 0; c < 4; ++c) {
        const int64_t x = tile.x + c - job.padding[2];
        const bool inside =
            Within(d, job.in_sizes[0]) && Within(y, job.in_sizes[1]) && Within(x, job.in_sizes[2]);
        at[r][c] = inside ? image + y * job.in_strides[2] + x * job.in_strides[3] : job.zeros;
      }
    }
  }
  const float* at[4][4];
};

// B' d, with the rows (1 0 -1 0), (0 1 1 0), (0 -1 1 0) and (0 1 0 -1) of B'.
inline void Differences(VecF a, VecF b, VecF c, VecF d, VecF (&to)[4]) {
  to[0] = a - c;
  to[1] = b + c;
  to[2] = c - b;
  to[3] = b - d;
}

// Whole vectors, or `lanes` numbers.
template <bool kWhole>
inline void WinogradInput(const WinogradPixels& pixels, int64_t channel, int lanes, float* to,
                          int64_t step) {
  VecF columns[4][4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    VecF d[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const float* at = pixels.at[r][c] + channel;
      d[r] = kWhole ? Load(at) : LoadPart(at, lanes);
    }
    Differences(d[0], d[1], d[2], d[3], columns[c]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    VecF row[4];
    Differences(columns[0][r], columns[1][r], columns[2][r], columns[3][r], row);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      if constexpr (kWhole) {
        Store(to + (4 * r + c) * step, row[c]);
      } else {
        StorePart(to + (4 * r + c) * step, row[c], lanes);
      }
    }
  }
}

void WinogradInputs(const WinogradJob& job, int64_t first, int64_t count, float* to, int64_t step) {
  const int64_t whole = job.inner / kLanes * kLanes;
  const auto left = static_cast<int>(job.inner - whole);
  for (int64_t t = 0; t < count; ++t) {
    const WinogradTile tile(job, first + t);
    for (int64_t s = 0; s < job.slices; ++s, to += job.inner) {
      const WinogradPixels pixels(job, tile, s);
      for (int64_t c = 0; c < whole; c += kLanes) {
        WinogradInput<true>(pixels, c, kLanes, to + c, step);
      }
      if (left > 0) WinogradInput<false>(pixels, whole, left, to + whole, step);
    }
  }
}

// The results of a tile that lie in the image.
struct WinogradPlaces {
  WinogradPlaces(const WinogradJob& job, const WinogradTile& tile) {
    const int64_t (&to)[4] = job.out_strides;
    const int64_t (&strides)[4] = job.epilogue.residual_strides;
    for (int r = 0; r < 2; ++r) {
      for (int c = 0; c < 2; ++c) {
        const int64_t y = tile.y + r;
        const int64_t x = tile.x + c;
        if (y >= job.grid[2] || x >= job.grid[3]) continue;
        results[count] = 2 * r + c;
        pixels[count] = job.out + tile.n * to[0] + tile.d * to[1] + y * to[2] + x * to[3];
        if (job.epilogue.residual != nullptr) {
          residuals[count] = job.epilogue.residual + tile.n * strides[0] + tile.d * strides[1] +
                             y * strides[2] + x * strides[3];
        }
        ++count;
      }
    }
  }
  int count = 0;
  int results[4];
  float* pixels[4];
  const float* residuals[4];
};

// A' m, with the rows (1 1 1 0) and (0 1 -1 -1) of A'.
inline void Sums(VecF a, VecF b, VecF c, VecF d, VecF (&to)[2]) {
  to[0] = a + b + c;
  to[1] = b - c - d;
}

// Finishes up to a vector of channels of a tile's results. sums: the 16 products, `step` apart.
// Adds zero to `zero` for each result, or NaN if it is not finite.
inline void WinogradResult(const ConvEpilogue& epilogue, const WinogradPlaces& places,
                           const float* sums, int64_t step, int64_t channel, int lanes,
                           VecF& zero) {
  VecF columns[4][2];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const float* at = sums + c * step;
    Sums(Load(at), Load(at + 4 * step), Load(at + 8 * step), Load(at + 12 * step), columns[c]);
  }
  VecF results[4];
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    VecF row[2];
    Sums(columns[0][r], columns[1][r], columns[2][r], columns[3][r], row);
    results[2 * r] = row[0];
    results[2 * r + 1] = row[1];
  }
  VecF scale = Splat(1);
  VecF shift = {};
  if (epilogue.scale != nullptr) scale = LoadPart(epilogue.scale + channel, lanes);
  if (epilogue.shift != nullptr) shift = LoadPart(epilogue.shift + channel, lanes);
  const bool clamps = ClampsFirst(epilogue);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    zero += results[i] * 0.0f;
    results[i] = Fma(results[i], scale, shift);
    if (clamps) results[i] = Clamped(results[i], Splat(epilogue.low), Splat(epilogue.high));
  }
  for (int i = 0; i < places.count; ++i) {
    StorePart(places.pixels[i] + channel, results[places.results[i]], lanes);
  }
}

bool WinogradResults(const WinogradJob& job, int64_t first, int64_t count, int64_t block,
                     const float* weights, const float* inputs, int64_t input_step, float* sums) {
  static constexpr ConvTap kTap = {{0, 0, 0}, 0};
  const int64_t channel = block * kConvBlock;
  const int64_t left = job.channels - channel;
  const int64_t step = count * kConvBlock;
  ConvJob product = {};
  product.taps = &kTap;
  product.tap_count = 1;
  product.inner = job.slices * job.inner;
  const int64_t channels = left < kConvBlock ? left : kConvBlock;
  product.channels = (channels + kLanes - 1) / kLanes * kLanes;  // weights are padded with zeros
  for (int d = 0; d < 3; ++d) {
    product.in_sizes[d] = INT64_MAX;
    product.steps[d] = product.grid[d] = 1;
  }
  product.grid[3] = count;
  product.in_strides[3] = product.inner;
  product.out_strides[3] = kConvBlock;
  product.tiles = (count + kTilePixels - 1) / kTilePixels;
  for (int i = 0; i < kWinogradProducts; ++i) {
    product.in = inputs + i * input_step;
    product.weights = weights + i * product.inner * kConvBlock;
    product.out = sums + i * step;
    RunTiles(product, 0, product.tiles, 0, 1);
  }
  VecF zero = {};
  for (int64_t t = 0; t < count; ++t) {
    const WinogradPlaces places(job, WinogradTile(job, first + t));
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t rest = channels - c;
      const int lanes = rest < kLanes ? static_cast<int>(rest) : kLanes;
      WinogradResult(job.epilogue, places, sums + t * kConvBlock + c, step, channel + c, lanes,
                     zero);
    }
    if (HasRest(job.epilogue)) {
      FinishPixels(job.epilogue,
                   {places.pixels, places.residuals, places.count, channel, channels});
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    if (!(zero[i] == 0.0f)) return false;
  }
  return true;
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_WINOGRAD_H_
