// Converts activations to integers. Only for kernels/quantized.cc.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_ROUND_H_
#define AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_ROUND_H_

#include "runtime/slim/kernels/quantized.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef int8_t BytesOfLanes __attribute__((vector_size(kLanes), aligned(1), may_alias));

constexpr float kMostFinite = 3.40282347e38f;
constexpr float kLeastNormal = 1.17549435e-38f;

// The step of numbers whose magnitudes, as bits, are at most `most`; false if one is an infinity or
// NaN.
inline bool StepOf(VecI most, int planes, float* step) {
  const VecI infinity = (VecI)Splat(0.0f) + 0x7f800000;
  const float largest = ReduceMax((VecF)(most > infinity ? infinity : most));
  if (!(largest <= kMostFinite)) return false;
  // The highest byte is at most 127; the others are in -128..127.
  const float units = planes == 2 ? 127.0f * 256 : 127.0f * 65536;
  const float one = largest / units;
  *step = one > kLeastNormal ? one : kLeastNormal;
  return true;
}

inline VecI RoundedOf(VecF scaled) {
  return __builtin_convertvector(scaled + (scaled < 0 ? Splat(-0.5f) : Splat(0.5f)), VecI);
}

// Converts a run of `count` numbers to planes of bytes and a step. Planes are written in complete
// vectors. Returns false if a number is an infinity or NaN.
inline bool RoundRun(const float* x, int64_t count, int planes, int8_t* const* to, float* step) {
  const VecI magnitude = (VecI)Splat(0.0f) + 0x7fffffff;
  const int64_t whole = count / kLanes * kLanes;
  const VecF last = LoadPart(x + whole, static_cast<int>(count - whole));
  // As integers, the bits of magnitudes are ordered like the numbers, and NaN is the greatest.
  VecI most = (VecI)last & magnitude;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const VecI size = (VecI)Load(x + i) & magnitude;
    most = size > most ? size : most;
  }
  if (!StepOf(most, planes, step)) return false;
  const VecF inverse = Splat(1 / *step);
  for (int64_t i = 0; i < count; i += kLanes) {
    VecI rest = RoundedOf((i < whole ? Load(x + i) : last) * inverse);
    for (int p = 0; p < planes; ++p) {
      const VecI low = rest << 24 >> 24;
      *reinterpret_cast<BytesOfLanes*>(to[p] + i) = __builtin_convertvector(low, BytesOfLanes);
      rest = (rest - low) >> 8;
    }
  }
  return true;
}

// Groups consist of complete vectors.
inline bool RoundForInt4(const Int4Round& round) {
  for (int64_t k = 0, group = 0; k < round.k; k += round.group, ++group) {
    const float* x = round.x + k;
    int8_t* to[kMaxPlanes];
    for (int p = 0; p < round.planes; ++p) to[p] = round.to[p] + k;
    if (!RoundRun(x, round.group, round.planes, to, round.steps + group)) return false;
    VecF sum = {};
    for (int64_t i = 0; i < round.group; i += kLanes) sum += Load(x + i);
    round.sums[group] = ReduceAdd(sum);
  }
  return true;
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_QUANTIZED_ROUND_H_
