// The tiles of a ConvJob: kPixels x kVectors vectors of results stay in registers for all taps.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTilePixels = 12;  // 24 of 32 registers hold results
#else
constexpr int kTilePixels = 6;  // 12 of 16 registers hold results
#endif
constexpr int kTileVectors = 2;
constexpr int64_t kTileChannels = kTileVectors * kLanes;
static_assert(kConvBlock % kTileChannels == 0);

struct TilePixels {
  const float* in[kTilePixels];  // at tap position 0, 0, 0, which may be outside the image
  float* out[kTilePixels];
  int64_t at[kTilePixels][3];
  bool inside;  // whether all taps of all pixels are in the image
};

inline void FindPixels(const ConvJob& job, int64_t first, int count, TilePixels& pixels) {
  int64_t at[4];
  int64_t rest = first;
  for (int d = 3; d > 0; --d) {
    at[d] = rest % job.grid[d];
    rest /= job.grid[d];
  }
  at[0] = rest;
  pixels.inside = true;
  for (int i = 0; i < count;) {
    // A run of pixels in one row.
    const int64_t left = job.grid[3] - at[3];
    const int run = left < count - i ? static_cast<int>(left) : count - i;
    int64_t in_at[3];
    int64_t in_offset = at[0] * job.in_strides[0];
    int64_t out_offset = at[0] * job.out_strides[0];
    for (int d = 0; d < 3; ++d) {
      in_at[d] = at[d + 1] * job.steps[d];
      in_offset += in_at[d] * job.in_strides[d + 1];
      out_offset += at[d + 1] * job.out_strides[d + 1];
      const int64_t most = in_at[d] + (d == 2 ? (run - 1) * job.steps[d] : 0);
      pixels.inside &= in_at[d] + job.low[d] >= 0 && most + job.high[d] < job.in_sizes[d];
    }
    for (int j = 0; j < run; ++j, ++i) {
      pixels.in[i] = job.in + in_offset;
      pixels.out[i] = job.out + out_offset;
      pixels.at[i][0] = in_at[0];
      pixels.at[i][1] = in_at[1];
      pixels.at[i][2] = in_at[2];
      in_at[2] += job.steps[2];
      in_offset += job.steps[2] * job.in_strides[3];
      out_offset += job.out_strides[3];
    }
    at[3] += run;
    for (int d = 3; d > 0 && at[d] == job.grid[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// The beginning of each pixel's row of a tap, for tiles at the border of the image.
[[gnu::noinline]] void FindBorderRows(const ConvJob& job, const TilePixels& pixels,
                                      const ConvTap& tap, int64_t offset, int count,
                                      const float** rows) {
  for (int i = 0; i < count; ++i) {
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      const auto at = static_cast<uint64_t>(pixels.at[i][d] + tap.at[d]);
      inside &= at < static_cast<uint64_t>(job.in_sizes[d]);
    }
    rows[i] = inside ? pixels.in[i] + offset : job.zeros;
  }
}

template <int kPixels>
inline void FindRows(const ConvJob& job, const TilePixels& pixels, const ConvTap& tap,
                     const float** rows) {
  const int64_t offset =
      tap.at[0] * job.in_strides[1] + tap.at[1] * job.in_strides[2] + tap.at[2] * job.in_strides[3];
  if (!pixels.inside) return FindBorderRows(job, pixels, tap, offset, kPixels, rows);
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) rows[i] = pixels.in[i] + offset;
}

[[gnu::noinline]] void PadChannels(const float* values, int64_t count, float* to) {
  for (int64_t c = 0; c < kTileChannels; ++c) to[c] = c < count ? values[c] : 0;
}

// The values of a tile's channels, of which there are `count`: in `room`, padded with zeros, unless
// the vectors are complete.
inline const float* ChannelValues(const float* values, int64_t count, float* room) {
  if (count >= kTileChannels) return values;
  PadChannels(values, count, room);
  return room;
}

template <int kPixels, int kVectors>
[[gnu::noinline]] void Tile(const ConvJob& job, const TilePixels& pixels, const float* weights,
                            int64_t channel) {
  VecF sums[kPixels][kVectors];
  const int64_t left = job.channels - channel;
  const bool whole = left >= kVectors * kLanes;
  const ConvEpilogue& epilogue = job.epilogue;
  // The sums begin with the shift, unless they are scaled.
  const float* start = epilogue.scale == nullptr ? epilogue.shift : nullptr;
  float start_room[kTileChannels];
  if (start != nullptr) start = ChannelValues(start + channel, left, start_room);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const VecF first = start != nullptr ? Load(start + v * kLanes) : VecF{};
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) sums[i][v] = first;
  }
  for (int64_t t = 0; t < job.tap_count; ++t) {
    const float* rows[kPixels];
    FindRows<kPixels>(job, pixels, job.taps[t], rows);
    const float* w = weights + job.taps[t].weights;
    const int64_t inner = job.inner;
    for (int64_t k = 0; k < inner; ++k) {
      VecF b[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) b[v] = Load(w + v * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) {
        const VecF a = Splat(rows[i][k]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Fma(a, b[v], sums[i][v]);
      }
      w += kConvBlock;
    }
  }
  if (epilogue.scale != nullptr) {
    float scale_room[kTileChannels];
    float shift_room[kTileChannels];
    const float* scale = ChannelValues(epilogue.scale + channel, left, scale_room);
    const float* shift = epilogue.shift;
    if (shift != nullptr) shift = ChannelValues(shift + channel, left, shift_room);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const VecF factor = Load(scale + v * kLanes);
      const VecF summand = shift != nullptr ? Load(shift + v * kLanes) : VecF{};
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) sums[i][v] = Fma(sums[i][v], factor, summand);
    }
  }
  if (ClampsFirst(epilogue)) {
    const VecF low = Splat(epilogue.low);
    const VecF high = Splat(epilogue.high);
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Clamped(sums[i][v], low, high);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) {
    float* out = pixels.out[i] + channel;
    if (whole) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Store(out + v * kLanes, sums[i][v]);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors - 1; ++v) Store(out + v * kLanes, sums[i][v]);
      constexpr int kLast = (kVectors - 1) * kLanes;
      StorePart(out + kLast, sums[i][kVectors - 1], static_cast<int>(left - kLast));
    }
  }
  if (!HasRest(epilogue)) return;
  const int64_t count = whole ? kVectors * kLanes : left;
  for (int i = 0; i < kPixels; ++i) {
    FinishPixels(epilogue, job.out, pixels.out[i] - job.out + channel, 1, 0, count);
  }
}

using TileFunction = void (*)(const ConvJob&, const TilePixels&, const float*, int64_t);

template <int kPixels>
constexpr void FillTable(TileFunction (&table)[kTilePixels + 1][kTileVectors + 1]) {
  table[kPixels][1] = Tile<kPixels, 1>;
  table[kPixels][2] = Tile<kPixels, 2>;
  if constexpr (kPixels > 1) FillTable<kPixels - 1>(table);
}

struct TileTable {
  TileFunction at[kTilePixels + 1][kTileVectors + 1] = {};
  constexpr TileTable() { FillTable<kTilePixels>(at); }
};
constexpr TileTable kTileTable;

void RunTiles(const ConvJob& job, int64_t first, int64_t last, int64_t block, int64_t block_end) {
  const int64_t count = job.grid[0] * job.grid[1] * job.grid[2] * job.grid[3];
  TilePixels pixels;
  for (int64_t t = first; t < last; ++t) {
    const int64_t begin = count * t / job.tiles;
    const auto size = static_cast<int>(count * (t + 1) / job.tiles - begin);
    FindPixels(job, begin, size, pixels);
    for (int64_t b = block; b < block_end; ++b) {
      const float* weights = job.weights + b * job.block_stride;
      for (int64_t c = 0; c < kConvBlock; c += kTileChannels) {
        const int64_t channel = b * kConvBlock + c;
        if (channel >= job.channels) break;
        const int vectors = job.channels - channel > kLanes ? 2 : 1;
        kTileTable.at[size][vectors](job, pixels, weights + c, channel);
      }
    }
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_
