// All tiles of a ConvJob, in the order in which what they read is still in a cache.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_pixels.h"
#include "runtime/slim/kernels/conv_tile.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int64_t kBlockBytes = kConvBlock * sizeof(float);
// The distance at which weights are prefetched.
constexpr int64_t kWeightsAhead = 24 * kConvBlock;
// The floats of a block whose weights are better read by several tiles at a time: they come from
// memory, or leave the L2 cache between two tiles.
constexpr int64_t kLarge = 128 * 1024;

using TileFunction = void (*)(const ConvJob&, const TilePixels&, const float*, int64_t,
                              const TilePart&);

struct TileFunctions {
  TileFunction of[2];  // whether it prefetches weights
};

template <ConvNumbers kNumbers, int kPixels>
constexpr void FillTable(TileFunctions (&table)[kTilePixels + 1][kTileVectors + 1]) {
  table[kPixels][1] = {Tile<kNumbers, kPixels, 1, false>, Tile<kNumbers, kPixels, 1, true>};
  table[kPixels][2] = {Tile<kNumbers, kPixels, 2, false>, Tile<kNumbers, kPixels, 2, true>};
  if constexpr (kPixels > 1) FillTable<kNumbers, kPixels - 1>(table);
}

struct TileTable {
  TileFunctions at[kTilePixels + 1][kTileVectors + 1] = {};
};
template <ConvNumbers kNumbers>
constexpr TileTable MakeTable() {
  TileTable table;
  FillTable<kNumbers, kTilePixels>(table.at);
  return table;
}
#if defined(__AVX512F__)
constexpr bool kMultipliesPairs = true;
#else
constexpr bool kMultipliesPairs = false;
#endif
// In the order of ConvNumbers.
constexpr TileTable kTileTables[] = {
    MakeTable<ConvNumbers::kFloats>(),
    MakeTable<kMultipliesPairs ? ConvNumbers::kPairs : ConvNumbers::kFloats>(),
    MakeTable<ConvNumbers::kNarrowWeights>(),
};

inline void RunPart(const ConvJob& job, TilePixels& pixels, int size, const float* weights,
                    int64_t channel, const TilePart& part) {
  const int vectors = job.channels - channel > kLanes ? 2 : 1;
  const TileFunctions& functions = kTileTables[static_cast<int>(job.numbers)].at[size][vectors];
  // Whether tiles of pairs read and write bfloat16 themselves.
  const bool in_rooms = job.numbers != ConvNumbers::kPairs || !EndsInRegisters(job.epilogue);
  const bool rounds = job.narrow != nullptr && part.ends && in_rooms;
  if (rounds) pixels.skipped = channel;
  const bool widens = job.epilogue.narrow_residual != nullptr && in_rooms;
  if ((widens || LacksChannels(job)) && part.ends) ReadResiduals(job, pixels, size, channel);
  functions.of[part.weights ? 1 : 0](job, pixels, weights, channel, part);
  if (rounds) RoundResults(job, pixels, size, channel);
}

// Several tiles whose sums are in memory between two parts, so that the weights of a part are read
// from the L1 cache by all tiles but the first.
constexpr int kTogether = 8;
constexpr int64_t kPartInputs = 256;

struct Together {
  TilePixels pixels[kTogether];
  int sizes[kTogether];
  alignas(64) float sums[kTogether][kTilePixels * kTileChannels];
};

// Computes `count` tiles for the channels from `channel` on.
inline void RunTogether(const ConvJob& job, Together& tiles, int count, const float* weights,
                        int64_t channel) {
  const int64_t parts = (job.inner + kPartInputs - 1) / kPartInputs;
  const int64_t all = job.tap_count * parts;
  for (int64_t i = 0; i < all; ++i) {
    const int64_t p = i % parts;
    TilePart part = {.taps = job.taps + i / parts,
                     .tap_count = 1,
                     .first = 2 * (job.inner / 2 * p / parts),
                     .last = p + 1 == parts ? job.inner : 2 * (job.inner / 2 * (p + 1) / parts),
                     .sums = nullptr,
                     .begins = i == 0,
                     .ends = i == all - 1,
                     .weights = true,
                     .ahead = nullptr,
                     .step = (kBlockBytes + count - 1) / count};
    // The weights of the next part.
    part.ahead = reinterpret_cast<const char*>(weights + part.taps->weights +
                                               WeightRows(job.numbers, part.last) * kConvBlock);
    for (int t = 0; t < count; ++t) {
      part.sums = tiles.sums[t];
      RunPart(job, tiles.pixels[t], tiles.sizes[t], weights, channel, part);
      part.ahead += part.step * WeightRows(job.numbers, part.last - part.first);
    }
  }
}

// What a tile brings into the cache for the next one: the pixels that this is the first one to
// read, those at the last tap. With one tap, pixels are read in the order in which they are in
// memory, which CPUs foresee.
struct Ahead {
  Ahead(const ConvJob& job, int64_t block, int64_t block_end)
      : chunks(job.tap_count * ((job.inner + kChunk - 1) / kChunk)) {
    if (job.tap_count <= 1 || job.inner == 0) return;
    offset = TapOffset(job, job.taps[job.tap_count - 1]);
    const int64_t end = block_end * kConvBlock;
    const int64_t channels = (end < job.channels ? end : job.channels) - block * kConvBlock;
    const int64_t calls = (channels + kTileChannels - 1) / kTileChannels;
    const int64_t reach = (kTilePixels - 1) * job.steps[2] * job.in_strides[3];
    lines = LinesEach(reach + job.inner, calls * chunks);
  }
  int64_t chunks;      // the number of times in a call at which it is done
  int64_t offset = 0;  // from the next tile's first pixel
  int64_t lines = 0;   // each time
};

// Computes one tile for the blocks of channels block..block_end. next: the tile after it. is_first:
// no tile has read the weights before.
inline void RunTile(const ConvJob& job, TilePixels& pixels, int size, const TilePixels& next,
                    const Ahead& ahead, bool is_first, int64_t block, int64_t block_end) {
  TilePart part = {.taps = job.taps,
                   .tap_count = job.tap_count,
                   .first = 0,
                   .last = job.inner,
                   .sums = nullptr,
                   .begins = true,
                   .ends = true,
                   .weights = is_first,
                   .ahead = nullptr,
                   .step = is_first ? kBlockBytes : 0};
  const int64_t end = block_end * kConvBlock < job.channels ? block_end * kConvBlock : job.channels;
  if (!is_first && ahead.lines > 0) {
    part.ahead = reinterpret_cast<const char*>(next.in[0] + ahead.offset);
    part.step = ahead.lines;
  }
  for (int64_t channel = block * kConvBlock; channel < end; channel += kTileChannels) {
    const float* weights =
        job.weights + channel / kConvBlock * job.block_stride + channel % kConvBlock;
    if (is_first) part.ahead = reinterpret_cast<const char*>(weights + kWeightsAhead);
    RunPart(job, pixels, size, weights, channel, part);
    part.ahead += part.step * ahead.chunks * kLine;
  }
}

// For weights that don't stay in the L2 cache from one tile to the next.
[[gnu::noinline]] void RunLargeTiles(const ConvJob& job, int64_t first, int64_t last, int64_t block,
                                     int64_t block_end) {
  Together tiles;
  TileStart start = FindStart(job, first);
  for (int64_t t = first; t < last; t += kTogether) {
    const int count = last - t < kTogether ? static_cast<int>(last - t) : kTogether;
    for (int i = 0; i < count; ++i) tiles.sizes[i] = FindTile(job, t + i, start, tiles.pixels[i]);
    for (int64_t b = block; b < block_end; ++b) {
      const float* weights = job.weights + b * job.block_stride;
      for (int64_t c = 0; c < kConvBlock; c += kTileChannels) {
        const int64_t channel = b * kConvBlock + c;
        if (channel >= job.channels) break;
        RunTogether(job, tiles, count, weights + c, channel);
      }
    }
  }
}

void RunTiles(const ConvJob& job, int64_t first, int64_t last, int64_t block, int64_t block_end) {
  if (first >= last) return;
  if (job.tap_count * job.inner * kConvBlock > kLarge) {
    return RunLargeTiles(job, first, last, block, block_end);
  }
  const Ahead ahead(job, block, block_end);
  TilePixels pixels[2];
  int sizes[2];
  TileStart start = FindStart(job, first);
  sizes[0] = FindTile(job, first, start, pixels[0]);
  for (int64_t t = first; t < last; ++t) {
    const int now = (t - first) % 2;
    const int next = t + 1 < last ? 1 - now : now;
    if (next != now) sizes[next] = FindTile(job, t + 1, start, pixels[next]);
    if (job.rows != nullptr) CopyRows(job, sizes[now], pixels[now]);
    RunTile(job, pixels[now], sizes[now], pixels[next], ahead, t == first, block, block_end);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_
