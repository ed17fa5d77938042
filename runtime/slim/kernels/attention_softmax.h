// The softmax of a row of scores. Only for kernels/attention*.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_SOFTMAX_H_
#define AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_SOFTMAX_H_

#include <math.h>
#include <stdint.h>

#include "runtime/slim/kernels/exp.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr float kLog2E = 1.44269504f;

// The first `count` lanes of x; `other` in the rest.
inline VecF First(VecF x, int count, float other) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = lane < count ? x[lane] : other;
  return x;
}

// The largest score of a row, spread over the lanes. A score is a product times `scale`; with a
// mask, which is added, the products are replaced by scores.
inline VecF Largest(float* products, int64_t keys, const float* mask, float scale) {
  VecF most = Splat(-INFINITY);
  int64_t i = 0;
  for (; i + kLanes <= keys; i += kLanes) {
    VecF score = Load(products + i) * scale;
    if (mask != nullptr) Store(products + i, score = Fma(Load(mask + i), Splat(kLog2E), score));
    most = Max(most, score);
  }
  if (const int rest = static_cast<int>(keys - i); rest > 0) {
    VecF score = Load(products + i) * scale;
    if (mask != nullptr) {
      Store(products + i, score = Fma(LoadPart(mask + i, rest), Splat(kLog2E), score));
    }
    most = Max(most, First(score, rest, -INFINITY));
  }
  return most;
}

// Replaces a row's products by the weights 2^(product * scale - maximum), and by 0 from `keys` up
// to a full vector. Returns their sum, spread over the lanes.
inline VecF Weigh(float* products, int64_t keys, float scale, float maximum) {
  VecF sum = {};
  int64_t i = 0;
  for (; i + kLanes <= keys; i += kLanes) {
    const VecF weight = Exp2(Fma(Load(products + i), Splat(scale), Splat(-maximum)));
    sum += weight;
    Store(products + i, weight);
  }
  if (const int rest = static_cast<int>(keys - i); rest > 0) {
    const VecF weight =
        First(Exp2(Fma(Load(products + i), Splat(scale), Splat(-maximum))), rest, 0);
    Store(products + i, weight);
    sum += weight;
  }
  return sum;
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_SOFTMAX_H_
