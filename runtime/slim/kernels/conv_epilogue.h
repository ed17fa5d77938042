// What follows the sums of a convolution: see ConvEpilogue.
//
// Scale, shift and clamp, the most frequent ones, are done in registers where the sums are. The
// rest is done in the cache, after the store: it is too much code to be in every tile's function.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/exp.h"
#include "runtime/slim/kernels/gelu.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

inline bool Clamps(const ConvEpilogue& epilogue) {
  return epilogue.activation == ConvActivation::kClamp;
}

// Whether the results are clamped in registers: nothing comes between the sums and the clamp.
inline bool ClampsFirst(const ConvEpilogue& epilogue) {
  return Clamps(epilogue) && (!HasResidual(epilogue) || epilogue.residual_last);
}

// Whether a residual is added to the sums, and nothing but a clamp follows.
inline bool AddsFirst(const ConvEpilogue& epilogue) {
  if (!HasResidual(epilogue)) return false;
  if (epilogue.activation == ConvActivation::kNone) return true;
  return Clamps(epilogue) && !epilogue.residual_last;
}

// Whether something remains to be done after the store.
inline bool HasRest(const ConvEpilogue& epilogue) {
  if (HasResidual(epilogue)) return true;
  return epilogue.activation != ConvActivation::kNone &&
         epilogue.activation != ConvActivation::kClamp;
}

// NaN stays NaN.
inline VecF NotBelow(VecF x, VecF low) { return x < low ? low : x; }
inline VecF NotAbove(VecF x, VecF high) { return x > high ? high : x; }
inline VecF Clamped(VecF x, VecF low, VecF high) { return NotAbove(NotBelow(x, low), high); }

inline VecF Silu(VecF x) {
#if defined(__AVX512F__)
  // e^-|x| = 2^n * e^-r, within 2.1 ulp. Of 200, it is 0.
  const auto all = static_cast<__mmask16>(-1);  // gcc warns of the forms without a mask
  const __m512 magnitude = (__m512)((VecI)x & 0x7fffffff);
  const VecF size = (VecF)_mm512_maskz_min_ps(all, _mm512_set1_ps(200), magnitude);
  const VecF magic = Splat(12582912);  // 1.5 * 2^23: adding it rounds to an integer
  const VecF n = Fma(size, Splat(-1.44269504f), magic) - magic;
  const VecF r = Fma(n, Splat(0.693147182f), size);
  VecF p = Splat(-8.29035500e-3f);
  p = Fma(p, r, Splat(4.18979308e-2f));
  p = Fma(p, r, Splat(-1.66676357e-1f));
  p = Fma(p, r, Splat(4.99991502e-1f));
  p = Fma(p, r, Splat(-9.99999749e-1f));
  p = Fma(p, r, Splat(1.0f));
  const VecF e = (VecF)_mm512_maskz_scalef_ps(all, (__m512)p, (__m512)n);
  const __mmask16 below = _mm512_movepi32_mask((__m512i)x);
  const VecF above = (VecF)_mm512_mask_mov_ps(_mm512_set1_ps(1), below, (__m512)e);
  return x * Ratio(above, 1.0f + e);
#else
  const VecF e = Exp(x > VecF{} ? -x : x);  // of -|x|
  return x * Ratio(x < VecF{} ? e : Splat(1.0f), 1.0f + e);
#endif
}

template <ConvActivation kActivation>
inline VecF Activated(const ConvEpilogue& epilogue, VecF x) {
  switch (kActivation) {
    case ConvActivation::kNone:
      return x;
    case ConvActivation::kClamp:
      return Clamped(x, Splat(epilogue.low), Splat(epilogue.high));
    case ConvActivation::kSilu:
      return Silu(x);
    case ConvActivation::kHardSwish:
      return x * (Clamped(x + 3.0f, VecF{}, Splat(6)) * (1.0f / 6.0f));
    case ConvActivation::kLeakyRelu:
      return x < VecF{} ? x * epilogue.low : x;
    case ConvActivation::kGelu:
      return Gelu(x);
  }
  return x;
}

// Some pixels of the results, of which `channels` from `channel` on are to be finished.
struct Unfinished {
  float* const* pixels;
  const float* const* residuals;  // of each pixel, if there is a residual
  int count;
  int64_t channel, channels;
  // So many channels before these are not in `pixels`, and not in `residuals`.
  int64_t skipped = 0, skipped_residuals = 0;
};

enum class Residual { kNone, kFirst, kLast };

template <ConvActivation kActivation, Residual kResidual>
void FinishAll(const ConvEpilogue& epilogue, const Unfinished& part) {
  const auto finished = [&](VecF x, VecF other) {
    if constexpr (kResidual == Residual::kFirst) x += other;
    x = Activated<kActivation>(epilogue, x);
    if constexpr (kResidual == Residual::kLast) x += other;
    return x;
  };
  const int64_t whole = part.channels / kLanes * kLanes;
  const auto left = static_cast<int>(part.channels - whole);
  for (int i = 0; i < part.count; ++i) {
    float* out = part.pixels[i] + (part.channel - part.skipped);
    const float* residual = out;
    if constexpr (kResidual != Residual::kNone) {
      residual = part.residuals[i] + (part.channel - part.skipped_residuals);
    }
    for (int64_t c = 0; c < whole; c += kLanes) {
      Store(out + c, finished(Load(out + c), Load(residual + c)));
    }
    if (left == 0) continue;
    const VecF x = LoadPart(out + whole, left);
    StorePart(out + whole, finished(x, LoadPart(residual + whole, left)), left);
  }
}

template <ConvActivation kActivation>
void FinishWith(const ConvEpilogue& epilogue, const Unfinished& part) {
  if (!HasResidual(epilogue)) {
    FinishAll<kActivation, Residual::kNone>(epilogue, part);
  } else if (epilogue.residual_last) {
    FinishAll<kActivation, Residual::kLast>(epilogue, part);
  } else {
    FinishAll<kActivation, Residual::kFirst>(epilogue, part);
  }
}

[[gnu::noinline]] void FinishPixels(const ConvEpilogue& epilogue, const Unfinished& part) {
  switch (epilogue.activation) {
    case ConvActivation::kNone:
      return FinishAll<ConvActivation::kNone, Residual::kLast>(epilogue, part);
    case ConvActivation::kClamp:
      if (ClampsFirst(epilogue)) {
        return FinishAll<ConvActivation::kNone, Residual::kLast>(epilogue, part);
      }
      return FinishAll<ConvActivation::kClamp, Residual::kFirst>(epilogue, part);
    case ConvActivation::kSilu:
      return FinishWith<ConvActivation::kSilu>(epilogue, part);
    case ConvActivation::kHardSwish:
      return FinishWith<ConvActivation::kHardSwish>(epilogue, part);
    case ConvActivation::kLeakyRelu:
      return FinishWith<ConvActivation::kLeakyRelu>(epilogue, part);
    case ConvActivation::kGelu:
      return FinishWith<ConvActivation::kGelu>(epilogue, part);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_
