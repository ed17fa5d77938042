// The pixels of a ConvJob's tile: where their inputs, residuals and results lie.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_PIXELS_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_PIXELS_H_

#include <cstddef>

#include "runtime/slim/kernels/bfloat16.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kTilePixels = 14;  // 28 of 32 registers hold results
// With 4096 bytes between them, all rows are in one set of the first cache, which has room for 8 or
// 12.
constexpr int64_t kCrowded = 1024;
#elif defined(__aarch64__)
constexpr int kTilePixels = 12;  // 24 of 32 registers hold results
constexpr int64_t kCrowded = int64_t{1} << 62;
#else
constexpr int kTilePixels = 6;  // 12 of 16 registers hold results
constexpr int64_t kCrowded = int64_t{1} << 62;
#endif
constexpr int kTileVectors = 2;
constexpr int64_t kTileChannels = kTileVectors * kLanes;
static_assert(kConvBlock % kTileChannels == 0);

// The pixels of a tile. A run of them is written as a whole tile, so there is room behind the last.
struct TilePixels {
  TilePixels() {
    for (int i = 0; i < kTilePixels; ++i) out[i] = room + i * kTileChannels;
    for (int i = 0; i < kTilePixels; ++i) residual[i] = residual_room + i * kTileChannels;
  }
  static constexpr int kRoom = 2 * kTilePixels;
  const float* in[kRoom];  // at tap position 0, 0, 0, which may be outside the image
  float* out[kRoom];
  uint16_t* narrow[kRoom];       // only for results that are rounded: `out` are then in `room`
  const float* residual[kRoom];  // only if there is a residual
  // Only for a residual of bfloat16, or of fewer channels: `residual` are then in `residual_room`.
  const uint16_t* narrow_residual[kRoom];
  const float* fewer_residual[kRoom];
  int64_t step;          // between those that follow each other in one row
  int64_t at[3][kRoom];  // only if not `inside`
  bool inside;           // whether all taps of all pixels are in the image
  bool one_row;          // whether the pixels follow each other in one row
  // The channels of a call, if its results are not floats, or its residuals not as `out`. So many
  // are before them.
  alignas(64) float room[kTilePixels * kTileChannels];
  alignas(64) float residual_room[kTilePixels * kTileChannels];
  int64_t skipped = 0, skipped_residuals = 0;
};

// Where a tile begins.
struct TileStart {
  int64_t pixel;
  int64_t at[4];
};

inline int64_t AllPixels(const ConvJob& job) {
  return job.grid[0] * job.grid[1] * job.grid[2] * job.grid[3];
}

inline TileStart StartAt(const ConvJob& job, int64_t pixel) {
  TileStart start;
  start.pixel = pixel;
  int64_t rest = start.pixel;
  for (int d = 3; d > 0; --d) {
    start.at[d] = rest % job.grid[d];
    rest /= job.grid[d];
  }
  start.at[0] = rest;
  return start;
}

// From a pixel to a later one of the same row, or to the first one of the next row.
inline void Advance(const ConvJob& job, int64_t count, int64_t (&at)[4]) {
  at[3] += count;
  for (int d = 3; d > 0 && at[d] == job.grid[d]; --d) {
    at[d] = 0;
    ++at[d - 1];
  }
}

// to[i] = the place that is i steps behind `first`.
template <typename T>
inline void FillPlaces(T first, int64_t step, T* to) {
  for (int i = 0; i < kTilePixels; ++i, first += step) to[i] = first;
}

// The first pixel of a tile.
inline int64_t FirstOf(const ConvJob& job, int64_t tile) {
  if (job.row_tiles == 0) return AllPixels(job) * tile / job.tiles;
  const int64_t row = tile / job.row_tiles, in_row = tile % job.row_tiles;
  return row * job.grid[3] + job.grid[3] * in_row / job.row_tiles;
}

inline TileStart FindStart(const ConvJob& job, int64_t tile) {
  return StartAt(job, FirstOf(job, tile));
}

// Finds the places in the image of a tile's pixels, from this one on.
[[gnu::noinline]] void FindPlaces(const ConvJob& job, int64_t pixel, TilePixels& pixels) {
  TileStart start = StartAt(job, pixel);
  int64_t (&at)[4] = start.at;
  for (int i = 0; i < kTilePixels; ++i) {
    for (int d = 0; d < 3; ++d) pixels.at[d][i] = at[d + 1] * job.steps[d];
    Advance(job, 1, at);
  }
}

// Whether the residual has fewer channels than the result.
inline bool LacksChannels(const ConvJob& job) {
  return job.epilogue.residual != nullptr && job.epilogue.residual_channels < job.channels;
}

// Finds `count` pixels, and where the next tile begins.
inline void FindPixels(const ConvJob& job, int count, TileStart& start, TilePixels& pixels) {
  int64_t (&at)[4] = start.at;
  const int64_t first = start.pixel;
  start.pixel += count;
  pixels.step = job.steps[2] * job.in_strides[3];
  pixels.inside = true;
  pixels.one_row = count <= job.grid[3] - at[3];
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
    FillPlaces(job.in + in_offset, pixels.step, pixels.in + i);
    if (job.narrow != nullptr) {
      FillPlaces(job.narrow + out_offset, job.out_strides[3], pixels.narrow + i);
    } else {
      FillPlaces(job.out + out_offset, job.out_strides[3], pixels.out + i);
    }
    if (HasResidual(job.epilogue)) {
      const int64_t (&strides)[4] = job.epilogue.residual_strides;
      int64_t offset = 0;
      for (int d = 0; d < 4; ++d) offset += at[d] * strides[d];
      if (LacksChannels(job)) {
        FillPlaces(job.epilogue.residual + offset, strides[3], pixels.fewer_residual + i);
      } else if (job.epilogue.residual != nullptr) {
        FillPlaces(job.epilogue.residual + offset, strides[3], pixels.residual + i);
      } else {
        FillPlaces(job.epilogue.narrow_residual + offset, strides[3], pixels.narrow_residual + i);
      }
    }
    i += run;
    Advance(job, run, at);
  }
  if (!pixels.inside) FindPlaces(job, first, pixels);
}

// Finds the pixels of tile t, which begins at `start`, and their number.
inline int FindTile(const ConvJob& job, int64_t t, TileStart& start, TilePixels& pixels) {
  const auto size = static_cast<int>(FirstOf(job, t + 1) - start.pixel);
  FindPixels(job, size, start, pixels);
  return size;
}

// From the input at 0, 0, 0 to that of a tap.
inline int64_t TapOffset(const ConvJob& job, const ConvTap& tap) {
  return tap.at[0] * job.in_strides[1] + tap.at[1] * job.in_strides[2] +
         tap.at[2] * job.in_strides[3];
}

inline bool Within(int64_t at, int64_t size) {
  return static_cast<uint64_t>(at) < static_cast<uint64_t>(size);
}

// Whether the rows of a tap are in the image and at equal distances, as those of the pixels are.
inline bool HasEvenRows(const ConvJob& job, const TilePixels& pixels, const ConvTap& tap,
                        int count) {
  if (!pixels.one_row) return false;
  if (pixels.inside) return true;
  return Within(pixels.at[0][0] + tap.at[0], job.in_sizes[0]) &&
         Within(pixels.at[1][0] + tap.at[1], job.in_sizes[1]) &&
         Within(pixels.at[2][0] + tap.at[2], job.in_sizes[2]) &&
         Within(pixels.at[2][count - 1] + tap.at[2], job.in_sizes[2]);
}

// The beginning of each pixel's row of a tap: `offset` from the pixel, or zeros. Returns whether
// one of the first `count` is in the image.
[[gnu::noinline]] bool FindRows(const ConvJob& job, const TilePixels& pixels, const ConvTap& tap,
                                int64_t offset, int count, const float** rows) {
  for (int i = 0; i < kTilePixels; ++i) rows[i] = pixels.in[i] + offset;
  if (pixels.inside) return true;
  // Numbers of 64 bits, as pointers are: compilers make vectors of them.
  int64_t inside[kTilePixels];
  for (int i = 0; i < kTilePixels; ++i) {
    inside[i] = int64_t{Within(pixels.at[0][i] + tap.at[0], job.in_sizes[0])} &
                int64_t{Within(pixels.at[1][i] + tap.at[1], job.in_sizes[1])} &
                int64_t{Within(pixels.at[2][i] + tap.at[2], job.in_sizes[2])};
  }
  for (int i = 0; i < kTilePixels; ++i) rows[i] = inside[i] != 0 ? rows[i] : job.zeros;
  int64_t found = 0;
  for (int i = 0; i < count; ++i) found |= inside[i];
  return found != 0;
}

// Lets the pixels be rows of job.rows.
inline void CopyRows(const ConvJob& job, int size, TilePixels& pixels) {
  pixels.step = job.inner + kRowGap;
  pixels.one_row = true;
  for (int i = 0; i < size; ++i) {
    float* row = job.rows + i * pixels.step;
    __builtin_memcpy(row, pixels.in[i], static_cast<size_t>(job.inner) * sizeof(float));
    pixels.in[i] = row;
  }
}

inline int64_t ChannelsOfCall(const ConvJob& job, int64_t channel) {
  const int64_t left = job.channels - channel;
  return left < kTileChannels ? left : kTileChannels;
}

// Writes the results of a call, which are in `room`.
[[gnu::noinline]] void RoundResults(const ConvJob& job, const TilePixels& pixels, int size,
                                    int64_t channel) {
  const int64_t count = ChannelsOfCall(job, channel);
  for (int i = 0; i < size; ++i) {
    RoundToBFloat16(pixels.out[i], count, pixels.narrow[i] + channel);
  }
}

// Reads the residuals of a call, which are bfloat16 or lack channels, into `residual_room`.
[[gnu::noinline]] void ReadResiduals(const ConvJob& job, TilePixels& pixels, int size,
                                     int64_t channel) {
  const int64_t count = ChannelsOfCall(job, channel);
  pixels.skipped_residuals = channel;
  if (job.epilogue.narrow_residual != nullptr) {
    for (int i = 0; i < size; ++i) {
      WidenBFloat16(pixels.narrow_residual[i] + channel, count,
                    pixels.residual_room + i * kTileChannels);
    }
    return;
  }
  const int64_t left = job.epilogue.residual_channels - channel;
  for (int i = 0; i < size; ++i) {
    float* room = pixels.residual_room + i * kTileChannels;
    for (int v = 0; v < kTileVectors; ++v) {
      const int64_t first = v * kLanes;
      Store(room + first, left - first >= kLanes ? Load(pixels.fewer_residual[i] + channel + first)
                          : left > first
                              ? LoadPart(pixels.fewer_residual[i] + channel + first, left - first)
                              : VecF{});
    }
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_PIXELS_H_
