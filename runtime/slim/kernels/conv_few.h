// Convolutions with few channels in their results, such as one that ends a network. Vectors of
// channels would have unused lanes; here a vector has the products of inputs that lie side by side,
// and its lanes are added up after the last tap.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_FEW_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_FEW_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/conv_pixels.h"
#include "runtime/slim/kernels/conv_tile.h"
#include "runtime/slim/kernels/conv_tiles.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// The sums of a tile's pixels: a vector for each, of which the first lanes are channels.
struct FewSums {
  alignas(64) float of[kTilePixels][kLanes] = {};
};

// Adds the products of a tap. weights: of the first channel; the next one's are behind
// `channel_step` floats.
template <ConvNumbers kNumbers, int kChannels, typename Rows>
[[gnu::always_inline]] inline void AddFew(Rows& rows, const float* weights, int64_t channel_step,
                                          int64_t inner, VecF (&sums)[kTilePixels][kChannels]) {
  int64_t k = 0;
  for (; k + kLanes <= inner; k += kLanes) {
    VecF b[kChannels];
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) b[c] = Load(weights + c * channel_step + k);
#pragma GCC unroll 16
    for (int i = 0; i < kTilePixels; ++i) {
      const VecF a = Load(rows.At(i, k));
#pragma GCC unroll 4
      for (int c = 0; c < kChannels; ++c) sums[i][c] = AddProduct<kNumbers>(a, b[c], sums[i][c]);
    }
    rows.template Next<kLanes>();
  }
  if (k == inner) return;
  const auto left = static_cast<int>(inner - k);
  VecF b[kChannels];
#pragma GCC unroll 4
  for (int c = 0; c < kChannels; ++c) b[c] = LoadPart(weights + c * channel_step + k, left);
#pragma GCC unroll 16
  for (int i = 0; i < kTilePixels; ++i) {
    const VecF a = LoadPart(rows.At(i, k), left);
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) sums[i][c] = AddProduct<kNumbers>(a, b[c], sums[i][c]);
  }
}

// Computes the channels from `channel` on.
template <ConvNumbers kNumbers, int kChannels>
[[gnu::noinline]] void SumFew(const ConvJob& job, const TilePixels& pixels, int count,
                              const float* weights, int64_t channel, FewSums& results) {
  constexpr int kAll = kTilePixels * kChannels, kFours = (kAll + 3) / 4;
  const int64_t channel_step = job.tap_count * job.inner;
  VecF sums[kTilePixels][kChannels] = {};
  for (int64_t t = 0; t < job.tap_count; ++t) {
    const ConvTap& tap = job.taps[t];
    const int64_t offset = TapOffset(job, tap);
    const float* of_tap = weights + channel * channel_step + t * job.inner;
    if (count == kTilePixels && HasEvenRows(job, pixels, tap, kTilePixels)) {
      EvenRows<kTilePixels> rows(pixels.in[0] + offset, pixels.step);
      AddFew<kNumbers, kChannels>(rows, of_tap, channel_step, job.inner, sums);
    } else {
      UnevenRows<kTilePixels> rows(job, pixels, tap, offset, count);
      if (rows.found) AddFew<kNumbers, kChannels>(rows, of_tap, channel_step, job.inner, sums);
    }
  }
  VecF all[4 * kFours] = {};
#pragma GCC unroll 32
  for (int i = 0; i < kAll; ++i) all[i] = sums[i / kChannels][i % kChannels];
#pragma GCC unroll 8
  for (int four = 0; four < kFours; ++four) {
    const Quad totals = TotalsOfFour(all + 4 * four);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int i = 4 * four + j;
      if (i < kAll) results.of[i / kChannels][channel + i % kChannels] = totals[j];
    }
  }
}

template <ConvNumbers kNumbers>
void SumChannels(const ConvJob& job, const TilePixels& pixels, int count, const float* weights,
                 FewSums& results) {
  int64_t channel = 0;
  for (; channel + 2 <= job.channels; channel += 2) {
    SumFew<kNumbers, 2>(job, pixels, count, weights, channel, results);
  }
  if (channel < job.channels) SumFew<kNumbers, 1>(job, pixels, count, weights, channel, results);
}

// What follows the sums.
inline void FinishFew(const ConvJob& job, TilePixels& pixels, int count, const FewSums& sums) {
  const ConvEpilogue& epilogue = job.epilogue;
  const auto channels = static_cast<int>(job.channels);
  const VecF ones = Splat(1);
  const VecF scale = epilogue.scale != nullptr ? LoadPart(epilogue.scale, channels) : ones;
  const VecF shift = epilogue.shift != nullptr ? LoadPart(epilogue.shift, channels) : VecF{};
  if (epilogue.narrow_residual != nullptr || LacksChannels(job)) {
    ReadResiduals(job, pixels, count, 0);
  }
  for (int i = 0; i < count; ++i) {
    VecF x = Fma(Load(sums.of[i]), scale, shift);
    if (ClampsFirst(epilogue)) x = Clamped(x, Splat(epilogue.low), Splat(epilogue.high));
    StorePart(pixels.out[i], x, channels);
  }
  if (HasRest(epilogue)) {
    FinishPixels(epilogue, {pixels.out, pixels.residual, count, 0, job.channels});
  }
  if (job.narrow != nullptr) RoundResults(job, pixels, count, 0);
}

void RunFew(const ConvJob& job, const float* weights, int64_t first, int64_t last) {
  TileStart start = StartAt(job, first);
  TilePixels pixels;
  FewSums sums;
  while (start.pixel < last) {
    const int64_t left = last - start.pixel;
    const int count = left < kTilePixels ? static_cast<int>(left) : kTilePixels;
    FindPixels(job, count, start, pixels);
    if (kMultipliesPairs && job.numbers == ConvNumbers::kPairs) {
      SumChannels<kMultipliesPairs ? ConvNumbers::kPairs : ConvNumbers::kFloats>(job, pixels, count,
                                                                                 weights, sums);
    } else {
      SumChannels<ConvNumbers::kFloats>(job, pixels, count, weights, sums);
    }
    FinishFew(job, pixels, count, sums);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_FEW_H_
