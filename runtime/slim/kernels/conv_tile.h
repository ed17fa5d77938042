// A tile of a ConvJob: kPixels x kVectors vectors of results stay in registers for all taps.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_TILE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_TILE_H_

#include "runtime/slim/kernels/bfloat16.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/conv_pixels.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int kLine = 64;  // bytes of a cache line
constexpr int kLineFloats = kLine / 4;
// Inputs between two times at which pixels are prefetched. In the loop itself, a prefetch takes the
// place of a load.
constexpr int64_t kChunk = 128;

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
// those behind the first few are read from memory each time, which compilers would not do. Where
// there are only `count` pixels, the first one stands for the others.
template <int kPixels>
struct UnevenRows {
  static constexpr int kKept = kPixels < 8 ? kPixels : 8;
  UnevenRows(const ConvJob& job, const TilePixels& pixels, const ConvTap& tap, int64_t offset,
             int count = kPixels) {
    found = FindRows(job, pixels, tap, offset, count, of);
    for (int i = count; i < kPixels; ++i) of[i] = of[0];
#pragma GCC unroll 16
    for (int i = 0; i < kKept; ++i) kept[i] = of[i];
  }
  const float* At(int i, int64_t k) const {
    if (i < kKept) return kept[i] + k;
    return static_cast<const float* const volatile&>(of[i]) + k;
  }
  template <int kStep>
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
  const float* At(int i, int64_t /*k*/) const { return of[i / kEach] + i % kEach * step; }
  template <int kStep>
  void Next() {
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) {
      of[i] += kStep;
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
    const VecF a = Splat(*rows.At(i, k));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[i][v] = AddProduct<kNumbers>(a, b[v], sums[i][v]);
  }
  rows.template Next<1>();
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
    const int64_t offset = TapOffset(job, tap);
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

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_TILE_H_
