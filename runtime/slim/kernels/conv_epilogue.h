// What follows the sums of a convolution: see ConvEpilogue.
//
// Scale, shift and clamp, the most frequent ones, are done in registers where the sums are. The
// rest is done in the cache, after the store: it is too much code to be in every tile's function.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/exp.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

inline bool Clamps(const ConvEpilogue& epilogue) {
  return epilogue.activation == ConvActivation::kClamp;
}

// Whether the results are clamped in registers: nothing comes between the sums and the clamp.
inline bool ClampsFirst(const ConvEpilogue& epilogue) {
  return Clamps(epilogue) && (epilogue.residual == nullptr || epilogue.residual_last);
}

// Whether a residual is added to the sums, and nothing but a clamp follows.
inline bool AddsFirst(const ConvEpilogue& epilogue) {
  if (epilogue.residual == nullptr) return false;
  if (epilogue.activation == ConvActivation::kNone) return true;
  return Clamps(epilogue) && !epilogue.residual_last;
}

// Whether something remains to be done after the store.
inline bool HasRest(const ConvEpilogue& epilogue) {
  if (epilogue.residual != nullptr) return true;
  return epilogue.activation != ConvActivation::kNone &&
         epilogue.activation != ConvActivation::kClamp;
}

// NaN stays NaN.
inline VecF Clamped(VecF x, VecF low, VecF high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

inline VecF Silu(VecF x) {
  const VecF e = Exp(x > VecF{} ? -x : x);  // of -|x|
  return x * Ratio(x < VecF{} ? e : Splat(1.0f), 1.0f + e);
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
  }
  return x;
}

// Finishes a vector of channels, or the first `count` lanes of it.
template <ConvActivation kActivation>
inline void FinishVector(const ConvEpilogue& epilogue, float* out, const float* residual,
                         int count) {
  const bool whole = count == kLanes;
  VecF x = whole ? Load(out) : LoadPart(out, count);
  VecF other = {};
  if (residual != nullptr) other = whole ? Load(residual) : LoadPart(residual, count);
  if (ClampsFirst(epilogue)) {
    x += other;
  } else if (residual == nullptr) {
    x = Activated<kActivation>(epilogue, x);
  } else if (epilogue.residual_last) {
    x = Activated<kActivation>(epilogue, x) + other;
  } else {
    x = Activated<kActivation>(epilogue, x + other);
  }
  if (whole) {
    Store(out, x);
  } else {
    StorePart(out, x, count);
  }
}

// Some pixels of the results, of which `channels` from `channel` on are to be finished.
struct Unfinished {
  float* results;  // where those of the job begin
  float* const* pixels;
  int count;
  int64_t channel, channels;
};

template <ConvActivation kActivation>
void FinishAll(const ConvEpilogue& epilogue, const Unfinished& part) {
  for (int i = 0; i < part.count; ++i) {
    float* out = part.pixels[i] + part.channel;
    const float* residual = epilogue.residual;
    if (residual != nullptr) residual += out - part.results;
    for (int64_t c = 0; c < part.channels; c += kLanes) {
      const int64_t left = part.channels - c;
      FinishVector<kActivation>(epilogue, out + c, residual != nullptr ? residual + c : nullptr,
                                left < kLanes ? static_cast<int>(left) : kLanes);
    }
  }
}

[[gnu::noinline]] void FinishPixels(const ConvEpilogue& epilogue, const Unfinished& part) {
  switch (epilogue.activation) {
    case ConvActivation::kNone:
      return FinishAll<ConvActivation::kNone>(epilogue, part);
    case ConvActivation::kClamp:
      return FinishAll<ConvActivation::kClamp>(epilogue, part);
    case ConvActivation::kSilu:
      return FinishAll<ConvActivation::kSilu>(epilogue, part);
    case ConvActivation::kHardSwish:
      return FinishAll<ConvActivation::kHardSwish>(epilogue, part);
    case ConvActivation::kLeakyRelu:
      return FinishAll<ConvActivation::kLeakyRelu>(epilogue, part);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_EPILOGUE_H_
