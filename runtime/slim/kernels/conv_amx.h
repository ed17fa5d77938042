// Tiles of a ConvJob of pairs with AMX: the products of two tiles of pixels and a block of
// channels.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_AMX_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_AMX_H_

#include "runtime/slim/kernels/amx_tiles.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_pixels.h"
#include "runtime/slim/kernels/conv_tiles.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__)

// AMX's tiles of weights have so many columns, and all tiles so many pairs along the inputs.
constexpr int kAmxColumns = kSumColumns;
static_assert(kConvBlock == 2 * kAmxColumns && kTileChannels == kConvBlock);
static_assert(kTilePixels <= 16);

inline int64_t WholeSteps(int64_t pairs) { return (pairs + kAmxPairs - 1) / kAmxPairs * kAmxPairs; }

// Taps whose weights follow each other, and whose inputs are multiplied as one row of pairs. If the
// pairs of a tap are whole steps, each tap is alone, so that its inputs can be read in the image.
struct TapRun {
  TapRun(const ConvJob& job, int64_t first_tap) : first(first_tap), taps(1) {
    if (job.inner % kAmxPairs != 0) {
      const auto follows = [&](int64_t t) {
        return job.taps[t].weights == job.taps[t - 1].weights + job.inner * kConvBlock;
      };
      while (first + taps < job.tap_count && follows(first + taps)) ++taps;
    }
    pairs = taps * job.inner;
  }
  int64_t first, taps, pairs;
};

// The rows of a run for the pixels of a tile: where the first one is, and the bytes between two.
struct RunRows {
  const float* first;
  int64_t step;
};

// A tile of pixels, and the copies of the rows that can't be read in the image.
struct AmxPixels {
  TilePixels pixels;
  int size = 0;
  float* rows = nullptr;
  int64_t row = 0;  // floats of a row of `rows`
  float* sums = nullptr;

  bool ReadsImage(const ConvJob& job, const TapRun& run) const {
    return job.inner % kAmxPairs == 0 && HasEvenRows(job, pixels, job.taps[run.first], size);
  }

  // Copies the rows of all runs; each begins where a step does, and ends with zeros up to there.
  void CopyRows(const ConvJob& job) const {
    float* to = rows;
    for (int64_t t = 0; t < job.tap_count;) {
      const TapRun run(job, t);
      if (!ReadsImage(job, run)) CopyRun(job, run, to);
      to += WholeSteps(run.pairs);
      t += run.taps;
    }
  }

  void CopyRun(const ConvJob& job, const TapRun& run, float* to) const {
    const float* of[kTilePixels];
    for (int64_t t = 0; t < run.taps; ++t) {
      const ConvTap& tap = job.taps[run.first + t];
      FindRows(job, pixels, tap, TapOffset(job, tap), size, of);
      for (int i = 0; i < size; ++i) CopyFloats(of[i], job.inner, to + i * row + t * job.inner);
    }
    const int64_t rest = WholeSteps(run.pairs) - run.pairs;
    for (int i = 0; i < size && rest > 0; ++i) {
      for (int64_t k = 0; k < rest; ++k) to[i * row + run.pairs + k] = 0;
    }
  }

  // copied: the run's place in a row of `rows`.
  RunRows Rows(const ConvJob& job, const TapRun& run, int64_t copied) const {
    if (!ReadsImage(job, run)) {
      return {rows + copied, row * static_cast<int64_t>(sizeof(float))};
    }
    return {pixels.in[0] + TapOffset(job, job.taps[run.first]),
            pixels.step * static_cast<int64_t>(sizeof(float))};
  }

  static void CopyFloats(const float* from, int64_t count, float* to) {
    int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) Store(to + k, Load(from + k));
    const auto left = static_cast<int>(count - k);
    if (left > 0) StorePart(to + k, LoadPart(from + k, left), left);
  }
};

// Adds the products of whole steps. right: rows of a block of weights.
template <int kTiles, int kPanels>
inline void AddSteps(const RunRows (&left)[2], int64_t at, const float* right, int64_t steps) {
  constexpr int64_t kRightRow = kConvBlock * sizeof(float);
  const float* left0 = left[0].first + at;
  const float* left1 = left[1].first + at;
  for (; steps > 0; --steps) {
    AddStep<kTiles, kPanels>({{left0, left[0].step}, {left1, left[1].step}},
                             {{right, kRightRow}, {right + kAmxColumns, kRightRow}});
    left0 += kAmxPairs;
    left1 += kAmxPairs;
    right += kAmxPairs * kConvBlock;
  }
}

// The sums of `kTiles` tiles, of 16 or 32 channels from `channel` on. step_weights: room.
template <int kTiles, int kPanels>
[[gnu::noinline]] void MultiplyTiles(const ConvJob& job, AmxPixels (&tiles)[2],
                                     const float* weights, int64_t channel, float* step_weights) {
  constexpr int64_t kRow = kTileChannels * sizeof(float);
  // As those of other tiles, sums begin with the shift, unless they are scaled.
  const float* start = job.epilogue.scale == nullptr ? job.epilogue.shift : nullptr;
  if (start == nullptr) {
    ZeroSums<kTiles, kPanels>();
  } else {
    float* values = step_weights;
    PadChannels(start + channel, ChannelsOfCall(job, channel), values);
    FinishStores();
    LoadSums<kTiles, kPanels>(values, values, 0);  // every row is the same
    FinishStores();
  }
  int64_t copied = 0;
  for (int64_t t = 0; t < job.tap_count;) {
    const TapRun run(job, t);
    const float* right = weights + job.taps[t].weights;
    const RunRows left[2] = {tiles[0].Rows(job, run, copied),
                             tiles[kTiles - 1].Rows(job, run, copied)};
    const int64_t steps = run.pairs / kAmxPairs, rest = run.pairs % kAmxPairs;
    AddSteps<kTiles, kPanels>(left, 0, right, steps);
    if (rest > 0) {
      // Behind the run's weights are others, or nothing.
      const float* from = right + steps * kAmxPairs * kConvBlock;
      for (int64_t k = 0; k < kAmxPairs * kConvBlock; k += kLanes) {
        Store(step_weights + k, k < rest * kConvBlock ? Load(from + k) : VecF{});
      }
      FinishStores();
      AddSteps<kTiles, kPanels>(left, steps * kAmxPairs, step_weights, 1);
      FinishStores();
    }
    copied += WholeSteps(run.pairs);
    t += run.taps;
  }
  StoreSums<kTiles, kPanels>(tiles[0].sums, tiles[1].sums, kRow);
}

// Gives tiles as many rows as there are pixels, so that no others are read. On the stack that
// AddressSanitizer checks, gcc aligns the shapes less than it assumes when it writes them.
[[gnu::noinline, gnu::no_sanitize_address]] void ShapeTiles(int first, int second) {
  const auto rows = static_cast<uint8_t>(first), other_rows = static_cast<uint8_t>(second);
  const TileShapes shapes = {
      .palette = 1,
      .start_row = 0,
      .reserved = {},
      .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
      .rows = {rows, rows, other_rows, other_rows, kAmxPairs, kAmxPairs, rows, other_rows}};
  ConfigureTiles(shapes);
}

void RunAmxTiles(const ConvJob& job, int64_t first, int64_t last, int64_t block, int64_t block_end,
                 float* room) {
  if (first >= last) return;
  AmxPixels tiles[2];
  for (int i = 0; i < 2; ++i) {
    tiles[i].row = job.tap_count * WholeSteps(job.inner) + kRowGap;
    tiles[i].sums = room + i * kTilePixels * kTileChannels;
    tiles[i].rows = room + 2 * kTilePixels * kTileChannels + i * kTilePixels * tiles[i].row;
  }
  float* step_weights = tiles[1].rows + kTilePixels * tiles[1].row;
  int shaped[2] = {0, 0};
  TileStart start = FindStart(job, first);
  for (int64_t t = first; t < last; t += 2) {
    const int count = t + 1 < last ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      tiles[i].size = FindTile(job, t + i, start, tiles[i].pixels);
      tiles[i].CopyRows(job);
    }
    const int sizes[2] = {tiles[0].size, tiles[count - 1].size};
    if (sizes[0] != shaped[0] || sizes[1] != shaped[1]) {
      ShapeTiles(sizes[0], sizes[1]);
      shaped[0] = sizes[0];
      shaped[1] = sizes[1];
    }
    FinishStores();
    for (int64_t b = block; b < block_end; ++b) {
      const int64_t channel = b * kConvBlock;
      const float* weights = job.weights + b * job.block_stride;
      const bool wide = job.channels - channel > kAmxColumns;
      const auto multiply = count > 1 ? (wide ? MultiplyTiles<2, 2> : MultiplyTiles<2, 1>)
                                      : (wide ? MultiplyTiles<1, 2> : MultiplyTiles<1, 1>);
      multiply(job, tiles, weights, channel, step_weights);
      for (int i = 0; i < count; ++i) {
        // What follows the sums, without further products.
        const TilePart part = {.taps = job.taps,
                               .tap_count = 0,
                               .first = 0,
                               .last = job.inner,
                               .sums = tiles[i].sums,
                               .begins = false,
                               .ends = true,
                               .weights = false,
                               .ahead = nullptr,
                               .step = 0};
        RunPart(job, tiles[i].pixels, tiles[i].size, weights, channel, part);
      }
    }
  }
  ReleaseTiles();
}

constexpr auto kRunAmxTiles = RunAmxTiles;

#else

constexpr void (*kRunAmxTiles)(const ConvJob&, int64_t, int64_t, int64_t, int64_t,
                               float*) = nullptr;

#endif  // defined(__AVX512F__)

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_AMX_H_
