// The tiles of a ConvJob: kPixels x kVectors vectors of results stay in registers for all taps.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_TILES_H_

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
constexpr int kLine = 64;  // bytes of a cache line
constexpr int kLineFloats = kLine / 4;
constexpr int64_t kBlockBytes = kConvBlock * sizeof(float);
// Inputs between two times at which pixels are prefetched. In the loop itself, a prefetch takes the
// place of a load.
constexpr int64_t kChunk = 128;
// The distance at which weights are prefetched.
constexpr int64_t kWeightsAhead = 24 * kConvBlock;
// The floats of a block whose weights are better read by several tiles at a time: they come from
// memory, or leave the L2 cache between two tiles.
constexpr int64_t kLarge = 128 * 1024;

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
  const uint16_t*
      narrow_residual[kRoom];  // only for one of bfloat16: `residual` are then in a room
  int64_t step;                // between those that follow each other in one row
  int64_t at[3][kRoom];        // only if not `inside`
  bool inside;                 // whether all taps of all pixels are in the image
  bool one_row;                // whether the pixels follow each other in one row
  // The channels of a call, if its results or residuals are not floats. So many are before them.
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

// to[i] = the place that is i steps behind `first`.
template <typename T>
inline void FillPlaces(T first, int64_t step, T* to) {
  for (int i = 0; i < kTilePixels; ++i, first += step) to[i] = first;
}

inline TileStart FindStart(const ConvJob& job, int64_t tile) {
  return StartAt(job, AllPixels(job) * tile / job.tiles);
}

// Finds the places in the image of a tile's pixels, from this one on.
[[gnu::noinline]] void FindPlaces(const ConvJob& job, int64_t pixel, TilePixels& pixels) {
  TileStart start = StartAt(job, pixel);
  int64_t (&at)[4] = start.at;
  for (int i = 0; i < kTilePixels; ++i) {
    for (int d = 0; d < 3; ++d) pixels.at[d][i] = at[d + 1] * job.steps[d];
    ++at[3];
    for (int d = 3; d > 0 && at[d] == job.grid[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
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
      if (job.epilogue.residual != nullptr) {
        FillPlaces(job.epilogue.residual + offset, strides[3], pixels.residual + i);
      } else {
        FillPlaces(job.epilogue.narrow_residual + offset, strides[3], pixels.narrow_residual + i);
      }
    }
    i += run;
    at[3] += run;
    for (int d = 3; d > 0 && at[d] == job.grid[d]; --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
  if (!pixels.inside) FindPlaces(job, first, pixels);
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

[[gnu::noinline]] void PadChannels(const float* values, int64_t count, float* to) {
  for (int64_t c = 0; c < kTileChannels; ++c) to[c] = c < count ? values[c] : 0;
}

// The values of kVectors vectors of channels, of which there are `count`: in `room`, padded with
// zeros, unless the vectors are complete.
template <int kVectors>
inline const float* ChannelValues(const float* values, int64_t count, float* room) {
  if (count >= kVectors * kLanes) return values;
  PadChannels(values, count, room);
  return room;
}

// The part of a tile's products that a call computes: the inputs first..last of some taps.
struct TilePart {
  const ConvTap* taps;
  int64_t tap_count;
  int64_t first, last;
  // Between two parts, the sums are here; null if there is one part.
  float* sums;
  bool begins, ends;
  // What to bring into the cache meanwhile. Weights, which come from memory: `step` bytes with each
  // input, and the line behind them. Pixels: `step` lines with every kChunk inputs.
  bool weights;
  const char* ahead;
  int64_t step;
};

// How many cache lines to prefetch at each of `times` times.
inline int64_t LinesEach(int64_t floats, int64_t times) {
  return ((floats + kLineFloats - 1) / kLineFloats + times - 1) / times;
}

// The rows of a tile's pixels, for one tap. There are more of them than registers for pointers:
// those behind the first few are read from memory each time, which compilers would not do.
template <int kPixels>
struct UnevenRows {
  static constexpr int kKept = kPixels < 8 ? kPixels : 8;
  UnevenRows(const ConvJob& job, const TilePixels& pixels, const ConvTap& tap, int64_t offset) {
    found = FindRows(job, pixels, tap, offset, kPixels, of);
#pragma GCC unroll 16
    for (int i = 0; i < kKept; ++i) kept[i] = of[i];
  }
  float At(int i, int64_t k) const {
    if (i < kKept) return kept[i][k];
    return static_cast<const float* const volatile&>(of[i])[k];
  }
  void Next() {}
  bool found;  // whether there is more than zeros
  const float* of[kTilePixels];
  const float* kept[kKept];
};

// Makes the compiler compute addresses from the pointer instead of keeping them.
inline void KeepPointer(const float*& pointer) {
#if defined(__x86_64__) || defined(__aarch64__)
  asm("" : "+r"(pointer));
#endif
}

// Rows at equal distances: with a pointer for each pixel, there would not be enough registers.
template <int kPixels>
struct EvenRows {
  static constexpr int kEach = 3;  // an address is a pointer and 0, 1 or 2 steps
  static constexpr int kPointers = (kPixels + kEach - 1) / kEach;
  EvenRows(const float* first, int64_t pixel_step) : step(pixel_step) {
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) of[i] = first + i * kEach * step;
  }
  float At(int i, int64_t /*k*/) const { return of[i / kEach][i % kEach * step]; }
  void Next() {
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) {
      ++of[i];
      KeepPointer(of[i]);
    }
  }
  const float* of[kPointers];
  int64_t step;
};

// Whether nothing remains to be done after a tile's store, if the tile masks parts of vectors.
inline bool EndsInRegisters(const ConvEpilogue& epilogue) {
  return AddsFirst(epilogue) || !HasRest(epilogue);
}

// Loads or stores the first `count` lanes as bfloat16, in jobs of pairs.
#if defined(__AVX512F__)
inline VecF LoadNarrow(const uint16_t* p, int count) {
  const __m256i bits = _mm256_maskz_loadu_epi16(FirstLanes(count), p);
  return (VecF)((VecU)_mm512_maskz_cvtepu16_epi32(static_cast<__mmask16>(-1), bits) << 16);
}
inline void StoreRounded(uint16_t* p, VecF v, int count) {
  __m256i bits;
  asm("vcvtneps2bf16 %1, %0" : "=v"(bits) : "v"(v));
  _mm256_mask_storeu_epi16(p, FirstLanes(count), bits);
}
#else
inline VecF LoadNarrow(const uint16_t* p, int count) {
  float room[kLanes] = {};
  WidenBFloat16(p, count, room);
  return Load(room);
}
inline void StoreRounded(uint16_t* p, VecF v, int count) {
  float room[kLanes];
  Store(room, v);
  RoundToBFloat16(room, count, p);
}
#endif

// sum + a * b, or the same with the products of pairs. An intrinsic would need functions for CPUs
// with AVX512_BF16 alone all around it, which no level is.
template <ConvNumbers kNumbers>
inline VecF AddProduct(VecF a, VecF b, VecF sum) {
#if defined(__AVX512F__)
  if constexpr (kNumbers == ConvNumbers::kPairs) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
#endif
  return Fma(a, b, sum);
}

// How far AddProducts() moves `ahead`.
template <ConvNumbers kNumbers, bool kPrefetchWeights>
inline int64_t AheadOf(const TilePart& part) {
  int64_t inputs = part.last - part.first;
  if (kPrefetchWeights) inputs = WeightRows(kNumbers, inputs);
  return part.step * (kPrefetchWeights ? inputs : (inputs + kChunk - 1) / kChunk * kLine);
}

// Adds the products of one input of each pixel.
template <ConvNumbers kNumbers, int kPixels, int kVectors, typename Rows>
[[gnu::always_inline]] inline void AddInput(Rows& rows, int64_t k, const VecF (&b)[kVectors],
                                            VecF (&sums)[kPixels][kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) {
    const VecF a = Splat(rows.At(i, k));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = AddProduct<kNumbers>(a, b[v], sums[i][v]);
  }
  rows.Next();
}

// Adds the products of the inputs first..last of a tap.
template <ConvNumbers kNumbers, int kPixels, int kVectors, bool kPrefetchWeights, typename Rows>
[[gnu::always_inline]] inline void AddProducts(Rows& rows, const float* weights,
                                               const TilePart& part, const char*& ahead,
                                               VecF (&sums)[kPixels][kVectors]) {
  const float* w = weights + WeightRows(kNumbers, part.first) * kConvBlock;
  for (int64_t k = part.first; k < part.last;) {
    int64_t end = part.last;
    if constexpr (!kPrefetchWeights) {
      for (int64_t i = 0; i < part.step; ++i, ahead += kLine) __builtin_prefetch(ahead);
      end = k + kChunk < end ? k + kChunk : end;
    }
    for (; k < end; k += kNumbers == ConvNumbers::kNarrowWeights ? 2 : 1) {
      if constexpr (kPrefetchWeights) {
        __builtin_prefetch(ahead);
        if constexpr (kVectors * kLanes > kLineFloats) __builtin_prefetch(ahead + kLine);
        ahead += part.step;
      }
      VecF b[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) b[v] = Load(w + v * kLanes);
      if constexpr (kNumbers == ConvNumbers::kNarrowWeights) {
        VecF first[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          first[v] = (VecF)((VecU)b[v] << 16);
          b[v] = (VecF)((VecU)b[v] & 0xffff0000u);
        }
        AddInput<kNumbers>(rows, k, first, sums);
        AddInput<kNumbers>(rows, k + 1, b, sums);
      } else {
        AddInput<kNumbers>(rows, k, b, sums);
      }
      w += kConvBlock;
    }
  }
}

template <ConvNumbers kNumbers, int kPixels, int kVectors, bool kPrefetchWeights>
[[gnu::noinline]] void Tile(const ConvJob& job, const TilePixels& pixels, const float* weights,
                            int64_t channel, const TilePart& part) {
  VecF sums[kPixels][kVectors];
  const int64_t left = job.channels - channel;
  const bool whole = left >= kVectors * kLanes;
  const ConvEpilogue& epilogue = job.epilogue;
  if (part.begins) {
    // The sums begin with the shift, unless they are scaled.
    const float* start = epilogue.scale == nullptr ? epilogue.shift : nullptr;
    float start_room[kTileChannels];
    if (start != nullptr) start = ChannelValues<kVectors>(start + channel, left, start_room);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const VecF value = start != nullptr ? Load(start + v * kLanes) : VecF{};
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) sums[i][v] = value;
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = Load(part.sums + (i * kTileVectors + v) * kLanes);
      }
    }
  }
  // The last part writes here. With one tap, results follow each other as pixels do.
  if (part.ends && job.tap_count > 1) {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      if (job.narrow != nullptr) {
        __builtin_prefetch(pixels.narrow[i] + channel, 1);
        continue;
      }
      __builtin_prefetch(pixels.out[i] + channel, 1);
      if constexpr (kVectors * kLanes > kLineFloats) {
        __builtin_prefetch(pixels.out[i] + channel + kLineFloats, 1);
      }
    }
  }
  const char* ahead = part.ahead;
  for (int64_t t = 0; t < part.tap_count; ++t) {
    const ConvTap& tap = part.taps[t];
    const int64_t offset = tap.at[0] * job.in_strides[1] + tap.at[1] * job.in_strides[2] +
                           tap.at[2] * job.in_strides[3];
    if (HasEvenRows(job, pixels, tap, kPixels)) {
      EvenRows<kPixels> rows(pixels.in[0] + offset + part.first, pixels.step);
      AddProducts<kNumbers, kPixels, kVectors, kPrefetchWeights>(rows, weights + tap.weights, part,
                                                                 ahead, sums);
    } else {
      UnevenRows<kPixels> rows(job, pixels, tap, offset);
      if (!rows.found) {
        ahead += AheadOf<kNumbers, kPrefetchWeights>(part);
        continue;
      }
      AddProducts<kNumbers, kPixels, kVectors, kPrefetchWeights>(rows, weights + tap.weights, part,
                                                                 ahead, sums);
    }
  }
  if (!part.ends) {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Store(part.sums + (i * kTileVectors + v) * kLanes, sums[i][v]);
      }
    }
    return;
  }
  if (epilogue.scale != nullptr) {
    float scale_room[kTileChannels];
    float shift_room[kTileChannels];
    const float* scale = ChannelValues<kVectors>(epilogue.scale + channel, left, scale_room);
    const float* shift = epilogue.shift;
    if (shift != nullptr) shift = ChannelValues<kVectors>(shift + channel, left, shift_room);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const VecF factor = Load(scale + v * kLanes);
      const VecF summand = shift != nullptr ? Load(shift + v * kLanes) : VecF{};
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) sums[i][v] = Fma(sums[i][v], factor, summand);
    }
  }
  const bool added = (whole || kMasksParts) && AddsFirst(epilogue);
  constexpr int kLast = kVectors - 1;
  const int last = whole ? kLanes : static_cast<int>(left - kLast * kLanes);
  if (added && kNumbers == ConvNumbers::kPairs && epilogue.narrow_residual != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      const uint16_t* residual = pixels.narrow_residual[i] + channel;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] += LoadNarrow(residual + v * kLanes, v < kLast ? kLanes : last);
      }
    }
  } else if (added) {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      const float* residual = pixels.residual[i] + (channel - pixels.skipped_residuals);
#pragma GCC unroll 4
      for (int v = 0; v < kLast; ++v) sums[i][v] += Load(residual + v * kLanes);
      sums[i][kLast] +=
          kMasksParts ? LoadPart(residual + kLast * kLanes, last) : Load(residual + kLast * kLanes);
    }
  }
  if (added ? Clamps(epilogue) : ClampsFirst(epilogue)) {
    const VecF low = Splat(epilogue.low);
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = NotBelow(sums[i][v], low);
    }
    if (epilogue.high < __builtin_inff()) {
      const VecF high = Splat(epilogue.high);
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = NotAbove(sums[i][v], high);
      }
    }
  }
  if (kNumbers == ConvNumbers::kPairs && job.narrow != nullptr && EndsInRegisters(epilogue)) {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      uint16_t* narrow = pixels.narrow[i] + channel;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        StoreRounded(narrow + v * kLanes, sums[i][v], v < kLast ? kLanes : last);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) {
    float* out = pixels.out[i] + (channel - pixels.skipped);
    if (whole) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Store(out + v * kLanes, sums[i][v]);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kLast; ++v) Store(out + v * kLanes, sums[i][v]);
      StorePart(out + kLast * kLanes, sums[i][kLast], last);
    }
  }
  if (added || !HasRest(epilogue)) return;
  const int64_t count = whole ? kVectors * kLanes : left;
  FinishPixels(epilogue, {pixels.out, pixels.residual, kPixels, channel, count, pixels.skipped,
                          pixels.skipped_residuals});
}

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

// Reads the residuals of a call into `residual_room`.
[[gnu::noinline]] void WidenResiduals(const ConvJob& job, TilePixels& pixels, int size,
                                      int64_t channel) {
  const int64_t count = ChannelsOfCall(job, channel);
  pixels.skipped_residuals = channel;
  for (int i = 0; i < size; ++i) {
    WidenBFloat16(pixels.narrow_residual[i] + channel, count,
                  pixels.residual_room + i * kTileChannels);
  }
}

inline void RunPart(const ConvJob& job, TilePixels& pixels, int size, const float* weights,
                    int64_t channel, const TilePart& part) {
  const int vectors = job.channels - channel > kLanes ? 2 : 1;
  const TileFunctions& functions = kTileTables[static_cast<int>(job.numbers)].at[size][vectors];
  // Whether tiles of pairs read and write bfloat16 themselves.
  const bool in_rooms = job.numbers != ConvNumbers::kPairs || !EndsInRegisters(job.epilogue);
  const bool rounds = job.narrow != nullptr && part.ends && in_rooms;
  if (rounds) pixels.skipped = channel;
  if (job.epilogue.narrow_residual != nullptr && part.ends && in_rooms) {
    WidenResiduals(job, pixels, size, channel);
  }
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

// What a tile brings into the cache for the next one: the pixels that this is the first one to
// read, those at the last tap. With one tap, pixels are read in the order in which they are in
// memory, which CPUs foresee.
struct Ahead {
  Ahead(const ConvJob& job, int64_t block, int64_t block_end)
      : chunks(job.tap_count * ((job.inner + kChunk - 1) / kChunk)) {
    if (job.tap_count <= 1 || job.inner == 0) return;
    const ConvTap& tap = job.taps[job.tap_count - 1];
    offset = tap.at[0] * job.in_strides[1] + tap.at[1] * job.in_strides[2] +
             tap.at[2] * job.in_strides[3];
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

// Finds the pixels of tile t, which begins at `start`, and their number.
inline int FindTile(const ConvJob& job, int64_t t, TileStart& start, TilePixels& pixels) {
  const auto size = static_cast<int>(AllPixels(job) * (t + 1) / job.tiles - start.pixel);
  FindPixels(job, size, start, pixels);
  return size;
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
